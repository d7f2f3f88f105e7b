# Each target makes its own virtual environment under .environments/, builds the wheel of this tree and installs it there.
# All that is needed is Python 3.11 or newer with pip:   make demo PYTHON=python3.13

PYTHON ?= python3
TEST_PROCESSES ?= 2
MUTANTS ?= 20000
PREPARE := $(PYTHON) scripts/environment.py

DEMO := .environments/demo
TEST := .environments/test
LINT := .environments/lint
FIGURES := .environments/figures
BENCH := .environments/bench

RANDOM_TESTS := tests/properties/test_random_graphs.py tests/properties/test_random_onnx_models.py
RANDOM_TESTS += tests/operators/test_vector_levels.py tests/models/test_passes.py
CHECKS = $(1)/bin/ruff check --output-format=concise . && $(1)/bin/mypy && $(1)/bin/lint-imports --no-cache

.PHONY: help demo test fuzz nightly lint conformance pages figures bench clean

help:
	@echo "make demo      read lines of text and time ResNet-50 with models compiled to machine code"
	@echo "make test      lint, type check, check the imports, and run every test"
	@echo "make nightly   thousands of random graphs and models, all samples at every vector level, every half of the passes"
	@echo "make fuzz      compile and run 20,000 damaged models (MUTANTS=20000)"
	@echo "make lint      the checks alone"
	@echo "make conformance  run onnx's backend suite and list its outcomes anew"
	@echo "make pages     write docs/operators and docs/onnx_support.md from the definitions"
	@echo "make figures   measure every promise of the project and print promise, limit and measured value"
	@echo "make bench     compare with ONNX Runtime, OpenVINO and ncnn on every model of the benchmark"
	@echo "make clean     remove the environments and caches"

demo:
	$(PREPARE) $(DEMO) demo
	$(DEMO)/bin/glowstone demo

test:
	$(PREPARE) $(TEST) test
	$(call CHECKS,$(TEST))
	$(TEST)/bin/python -m pytest -n $(TEST_PROCESSES) -q

fuzz:
	$(PREPARE) $(TEST) test
	GLOWSTONE_FUZZ=$(MUTANTS) $(TEST)/bin/python -m pytest -n0 -q -s tests/importer/test_fuzz.py

nightly:
	$(PREPARE) $(TEST) test
	GLOWSTONE_NIGHTLY=1 $(TEST)/bin/python -m pytest -n $(TEST_PROCESSES) -q $(RANDOM_TESTS)

lint:
	$(PREPARE) $(LINT) lint
	$(call CHECKS,$(LINT))

conformance:
	$(PREPARE) $(TEST) test
	cd tests && ../$(TEST)/bin/python -m helpers.conformance -j $(TEST_PROCESSES)

pages:
	$(PREPARE) $(TEST) test
	$(TEST)/bin/python scripts/operator_pages.py

figures:
	$(PREPARE) $(FIGURES) figures
	$(FIGURES)/bin/python bench/figures.py

bench:
	$(PREPARE) $(BENCH) bench
	$(BENCH)/bin/python bench/benchmark.py

clean:
	rm -rf .environments build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
