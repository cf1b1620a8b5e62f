"""Writes onnx.textproto and onnx.pb.go; run through generate.sh.

The descriptor of ONNX's own Python bindings is moved to the proto package
npuctl.onnx, so that another ONNX binding in the same process cannot clash with
ours in protobuf's global registry. Package names never reach the wire, so files
stay what they are. protoc-gen-go gets the request that protoc would send, hence
protoc itself is not needed.
"""

import subprocess
import sys

import onnx
from google.protobuf import descriptor_pb2, text_format
from google.protobuf.compiler import plugin_pb2
from onnx import onnx_ml_pb2

PROTO_FILE = "npuctl/onnx.proto"
PROTO_PACKAGE = "npuctl.onnx"
GO_PACKAGE = "github.com/npuctl/npuctl/internal/onnxpb"
PLUGIN = "google.golang.org/protobuf/cmd/protoc-gen-go"  # version: go.mod's

HEADER = f"""# proto-file: google/protobuf/descriptor.proto
# proto-message: FileDescriptorProto
#
# The schema of ONNX {onnx.__version__} (onnx/onnx-ml.proto), IR version {onnx.IR_VERSION}, as a
# descriptor without its comments, in the proto package {PROTO_PACKAGE}.
# Copyright (c) ONNX Project Contributors. SPDX-License-Identifier: Apache-2.0
# Changes: file name, package name, json_name. Written by generate.py; do not edit.

"""


def json_name(field_name):
    first, *rest = field_name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def rename_message(message):
    """Moves the references of a message, and of those inside it, to our package."""
    for field in message.field:
        field.json_name = json_name(field.name)  # protoc always sends it
        if field.type_name:
            prefix = ".onnx."
            if not field.type_name.startswith(prefix):
                sys.exit(f"unexpected type {field.type_name} of field {field.name}")
            field.type_name = f".{PROTO_PACKAGE}.{field.type_name[len(prefix):]}"
    for nested in message.nested_type:
        rename_message(nested)


def renamed_descriptor():
    file = descriptor_pb2.FileDescriptorProto()
    onnx_ml_pb2.DESCRIPTOR.CopyToProto(file)
    if file.syntax not in ("", "proto2"):
        sys.exit(f"proto2 wanted for byte-identical round trips, got {file.syntax}")
    file.name, file.package = PROTO_FILE, PROTO_PACKAGE
    for message in file.message_type:
        rename_message(message)
    return file


def generate_go(file):
    request = plugin_pb2.CodeGeneratorRequest(
        file_to_generate=[file.name],
        parameter=f"module={GO_PACKAGE},M{file.name}={GO_PACKAGE}",
        proto_file=[file],
    )
    run = subprocess.run(
        ["go", "run", PLUGIN],
        input=request.SerializeToString(),
        stdout=subprocess.PIPE,
        check=True,
    )
    response = plugin_pb2.CodeGeneratorResponse.FromString(run.stdout)
    if response.error or len(response.file) != 1:
        sys.exit(f"protoc-gen-go: {response.error or 'one file expected'}")
    return response.file[0].content


def main():
    file = renamed_descriptor()
    with open("onnx.textproto", "w", encoding="utf-8") as out:
        out.write(HEADER + text_format.MessageToString(file))
    with open("onnx.pb.go", "w", encoding="utf-8") as out:
        out.write(generate_go(file))


main()
