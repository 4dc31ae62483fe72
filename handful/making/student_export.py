"""A trained student as an 8-bit ONNX file, which onnxruntime runs without torch."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ..embeddings.contextual import Encoder as Reader
from ..embeddings.onnx_encoder import INPUTS, MODEL, TOKENIZER
from ..utils.files import write_atomic
from ..utils.functional import Floats, unit_length
from .student import Student

OPSET = 17
OUTPUT = "vectors"
STEPS, SCALE = ".steps", ".scale"  # end the names of a packed table's parts
LARGEST_STEP = 127  # of 8 bits with a sign
MATRICES = ("MatMul", "Gemm")
COMMON = 0.45  # of the squared length of bge-small's vectors is common to all texts


def export(student: Student, source: str, folder: Path) -> None:
    """Write the model with 8-bit weights and the source's tokenizer to a folder.

    Each column of a matrix and each row of the table of pieces has its own scale. Weights of matrices have seven bits, because
    processors without VNNI add two products of eight bits in sixteen, which would overflow. `student.rounded_linear` does the
    same in training.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        exact, small = (str(Path(scratch) / name) for name in ("exact.onnx", "small.onnx"))
        write_exact(student, exact)
        quantize_dynamic(exact, small, list(MATRICES), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
        packed = pack_rows(onnx.load(small))
    write_atomic(folder / MODEL, packed.SerializeToString())
    shutil.copyfile(f"{Reader(source).folder}/{TOKENIZER}", folder / TOKENIZER)


class WithCommonPart(torch.nn.Module):
    """A student whose vectors have as much in common as the teacher's, so that what is tuned to the teacher suits it.

    The first number, along the direction that matters least, is replaced by a constant.
    """

    def __init__(self, student: Student) -> None:
        super().__init__()
        self.student = student

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The unit vectors of texts: (texts, dim)."""
        own = functional.normalize(self.student(input_ids, attention_mask)[:, 1:], dim=-1)
        common = torch.full_like(own[:, :1], COMMON**0.5)
        return torch.cat([common, (1 - COMMON) ** 0.5 * own], dim=1)


def own_part(vectors: Floats) -> Floats:
    """Unit vectors without the number that all have in common."""
    return unit_length(vectors[:, 1:])  # type: ignore[no-any-return]


def exported_layers(path: Path) -> dict[str, torch.Tensor]:
    """The layers of an exported student, by the names of its parameters; its map is left out."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    numbers = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found = {name: values for name, values in numbers.items() if values.dtype == np.float32}
    for name in [name for name in numbers if name.endswith(STEPS)]:
        table = name.removesuffix(STEPS)
        found[table] = numbers[name] * numbers[table + SCALE]
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            matrix = node.input[1].removesuffix("_quantized")
            owner = node.name.strip("/").rpartition("/")[0].replace("/", ".")
            found[f"{owner}.weight"] = (numbers[node.input[1]] * numbers[f"{matrix}_scale"]).T
    layers = {name.removeprefix("student."): values for name, values in found.items() if "transformer." in name}
    return {name: torch.from_numpy(np.array(values)) for name, values in layers.items() if not name.endswith(SCALE)}


def write_exact(student: Student, path: str) -> None:
    """Write the model in single precision."""
    example = torch.ones((2, 8), dtype=torch.int64)
    axes = {name: {0: "texts", 1: "pieces"} for name in INPUTS[:2]} | {OUTPUT: {0: "texts"}}
    names: dict[str, Any] = {"input_names": list(INPUTS[:2]), "output_names": [OUTPUT], "dynamic_axes": axes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older exporter is deprecated; the newer one needs fixed shapes here
        torch.onnx.export(WithCommonPart(student).eval(), (example, example), path, opset_version=OPSET, dynamo=False, **names)


def pack_rows(model: Any, least: int = 1 << 20) -> Any:
    """The model with 8 bits, and a scale for each row, in tables that rows are looked up in and that have this many numbers."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    for tensor in [one for one in graph.initializer if np.prod(one.dims) >= least and one.data_type == TensorProto.FLOAT]:
        users = [node for node in graph.node if tensor.name in node.input]
        if any(node.op_type != "Gather" for node in users):
            continue
        table = numpy_helper.to_array(tensor)
        scales = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-12) / LARGEST_STEP
        steps, scale = tensor.name + STEPS, tensor.name + SCALE
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(np.round(table / scales).astype(np.int8), steps))
        graph.initializer.append(numpy_helper.from_array(scales.astype(np.float32), scale))
        for node in users:
            rows, result = node.input[1], node.output[0]
            place = list(graph.node).index(node)
            graph.node.remove(node)
            for new in reversed(
                [
                    helper.make_node("Gather", [steps, rows], [f"{result}.steps"]),
                    helper.make_node("Cast", [f"{result}.steps"], [f"{result}.exact"], to=TensorProto.FLOAT),
                    helper.make_node("Gather", [scale, rows], [f"{result}.scale"]),
                    helper.make_node("Mul", [f"{result}.exact", f"{result}.scale"], [result]),
                ]
            ):
                graph.node.insert(place, new)
    return model
