"""ResNet-50 as one object file, linked with a short C program, gives the bits that it gives in this process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from glowstone.tools import resnet50

C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "resnet.h"

int main(void) {
    void *image = malloc(RESNET_INPUT_GPU_0_DATA_0_BYTES), *scores = malloc(RESNET_OUTPUT_GPU_0_SOFTMAX_1_BYTES);
    void *arena = aligned_alloc(RESNET_ARENA_ALIGNMENT, RESNET_ARENA_BYTES + RESNET_ARENA_ALIGNMENT
                                - RESNET_ARENA_BYTES % RESNET_ARENA_ALIGNMENT);
    const void *inputs[] = {image};
    void *outputs[] = {scores};
    if (fread(image, RESNET_INPUT_GPU_0_DATA_0_BYTES, 1, stdin) != 1) return 2;
    if (resnet_run(inputs, outputs, arena)) return 3;
    fwrite(scores, RESNET_OUTPUT_GPU_0_SOFTMAX_1_BYTES, 1, stdout);
    return 0;
}
"""


def test_resnet50_links_into_a_c_program(resnet_model, tmp_path):
    object_file, header = resnet_model.write_bundle(tmp_path, "resnet")
    assert header.parent == object_file.parent == tmp_path
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(C_PROGRAM)
    command = [sys.executable, "-m", "ziglang", "cc", str(source), str(object_file), "-o", str(program)]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
    image = resnet50.sample_image(3)
    result = subprocess.run([str(program)], input=image.tobytes(), stdout=subprocess.PIPE, check=True, timeout=120)
    expected = resnet_model.run({resnet50.INPUT_NAME: image})[resnet50.OUTPUT_NAME]
    assert result.stdout == np.ascontiguousarray(expected).tobytes()
