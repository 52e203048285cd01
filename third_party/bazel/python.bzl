"""Python tests, run with Debian's interpreter: its gRPC and protobuf are the ones to test with."""

def conclave_py_test(name, src, srcs = [], data = [], size = "medium", tags = []):
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/integration:run_python.sh"],
        args = ["$(location %s)" % src],
        data = [src] + srcs + data,
        tags = tags,
    )
