"""The text of a target is the target: what the cache keeps of this machine is what LLVM detected."""

from __future__ import annotations

from glowstone.backends.cpu.target import Target


def test_the_host_survives_its_text():
    host = Target.host()
    assert Target.parse(host.text) == host
    assert Target.parse(host.text).text == host.text


def test_the_order_of_features_does_not_matter():
    assert Target.parse("x86_64-linux/znver3/+fma,-avx512f,+avx2") == Target.parse(
        "x86_64-linux/znver3/+avx2,+fma,-avx512f"
    )
