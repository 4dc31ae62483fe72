"""bge-small as a torch module, from its 8-bit ONNX file: a student starts with some of its layers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..embeddings.onnx_encoder import MODEL

HEADS = 12  # of attention in each layer; the file does not say so


def read_teacher(folder: Path) -> Any:
    """The BERT of a folder with `model.onnx`, with its weights in single precision."""
    from transformers import BertConfig, BertModel

    weights = exact_weights(folder / MODEL)
    pieces, hidden = weights["embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=pieces,
        hidden_size=hidden,
        num_hidden_layers=sum(name.endswith("intermediate.dense.bias") for name in weights),
        num_attention_heads=HEADS,
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        hidden_dropout_prob=0.0,  # a student's targets are exact: there is nothing to guard against
        attention_probs_dropout_prob=0.0,
    )
    transformer = BertModel(config, add_pooling_layer=False)  # type: ignore[no-untyped-call]
    transformer.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    return transformer


def exact_weights(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The weights of an ONNX file by their names in BERT; those of 8 bits are multiplied by their scales."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def exact(name: str) -> np.ndarray[Any, Any]:
        steps = stored[f"{name}_quantized"].astype(np.float32) - stored[f"{name}_zero_point"].astype(np.float32)
        return (steps * stored[f"{name}_scale"]).astype(np.float32)  # type: ignore[no-any-return]

    found = {
        name: value.copy() for name, value in stored.items() if re.fullmatch(r"(embeddings|encoder)\..*\.(weight|bias)", name)
    }
    for name in stored:
        if name.startswith("embeddings.") and name.endswith("_quantized"):
            found[name.removesuffix("_quantized")] = exact(name.removesuffix("_quantized"))
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.name.startswith("/encoder/"):
            module = node.name.split("/MatMul")[0].strip("/").replace("/", ".")
            found[f"{module}.weight"] = np.ascontiguousarray(exact(node.input[1].removesuffix("_quantized")).T)
    return found
