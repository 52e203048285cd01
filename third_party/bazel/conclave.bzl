"""The rules every package of Conclave builds with: one place for compiler flags."""

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

def conclave_cc_library(name, copts = [], **kwargs):
    native.cc_library(
        name = name,
        copts = _WARNINGS + copts,
        **kwargs
    )

def conclave_cc_binary(name, copts = [], **kwargs):
    native.cc_binary(
        name = name,
        copts = _WARNINGS + copts,
        malloc = select({
            "//third_party:sanitized": "@bazel_tools//tools/cpp:malloc",
            "//conditions:default": "@system//:jemalloc",
        }),
        **kwargs
    )

def conclave_cc_test(name, copts = [], deps = [], data = [], size = "small", **kwargs):
    """A GoogleTest binary; its main comes from the library."""
    native.cc_test(
        name = name,
        size = size,
        # What the thread sanitizer is not to report (.bazelrc names it).
        data = data + ["//third_party:tsan.supp"],
        copts = _WARNINGS + copts,
        deps = deps + ["@system//:gtest_main"],
        **kwargs
    )

def conclave_proto_library(name, src, deps = [], visibility = None):
    """C++ messages (and service descriptors) of one .proto file under //proto.

    Generated headers are included as "conclave/v1/<file>.pb.h". No gRPC code is generated:
    the transport moves bytes by method name (see common/transport).
    """
    base = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        # Every .proto is an input: imports are resolved by path, and the set is small.
        srcs = [src, ":all_protos"],
        outs = [base + ".pb.h", base + ".pb.cc"],
        cmd = "protoc -Iproto --cpp_out=$(RULEDIR) $(location %s)" % src,
        message = "Generating C++ of " + src,
    )
    native.cc_library(
        name = name,
        srcs = [base + ".pb.cc"],
        hdrs = [base + ".pb.h"],
        copts = ["-Wno-error"],
        includes = ["."],
        # Reflection serves whatever is linked, referenced by code or not.
        alwayslink = True,
        visibility = visibility,
        deps = deps + ["@system//:protobuf"],
    )
