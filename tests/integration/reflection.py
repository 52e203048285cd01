"""A client of gRPC's reflection and health services, and through reflection of any service, made
from nothing but the published descriptions of the two."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TYPES = descriptor_pb2.FieldDescriptorProto


def _file(name, package, messages):
    """A file of flat messages: {message: [(field, number, type, type_name, repeated)]}."""
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for field_name, number, kind, type_name, repeated in fields:
            message.field.add(
                name=field_name, number=number, type=kind, type_name=type_name,
                label=_TYPES.LABEL_REPEATED if repeated else _TYPES.LABEL_OPTIONAL)
    return file


def _classes(pool, *names):
    factory = message_factory.MessageFactory(pool)
    return [factory.GetPrototype(pool.FindMessageTypeByName(n)) for n in names]


class Reflected:
    """A server, as it describes itself."""

    def __init__(self, endpoint):
        self._channel = grpc.insecure_channel(endpoint, options=[("grpc.enable_http_proxy", 0)])
        pool = descriptor_pool.DescriptorPool()
        string, message, bytes_ = _TYPES.TYPE_STRING, _TYPES.TYPE_MESSAGE, _TYPES.TYPE_BYTES
        prefix = "grpc.reflection.v1alpha"
        pool.Add(_file("reflection.proto", prefix, {
            "Request": [("host", 1, string, None, False),
                        ("file_containing_symbol", 4, string, None, False),
                        ("list_services", 7, string, None, False)],
            "Files": [("file_descriptor_proto", 1, bytes_, None, True)],
            "Service": [("name", 1, string, None, False)],
            "Services": [("service", 1, message, f".{prefix}.Service", True)],
            "Response": [("files", 4, message, f".{prefix}.Files", False),
                         ("services", 6, message, f".{prefix}.Services", False)],
        }))
        pool.Add(_file("health.proto", "grpc.health.v1", {
            "HealthCheckRequest": [("service", 1, string, None, False)],
            "HealthCheckResponse": [("status", 1, _TYPES.TYPE_INT32, None, False)],
        }))
        self._request, self._response = _classes(pool, f"{prefix}.Request", f"{prefix}.Response")
        self._health_request, self._health_response = _classes(
            pool, "grpc.health.v1.HealthCheckRequest", "grpc.health.v1.HealthCheckResponse")
        self._pool = descriptor_pool.DescriptorPool()
        self._known = set()

    def close(self):
        self._channel.close()

    def _ask(self, package="grpc.reflection.v1alpha", **request):
        # The messages of v1 and v1alpha have the same wire form.
        call = self._channel.stream_stream(
            f"/{package}.ServerReflection/ServerReflectionInfo",
            request_serializer=self._request.SerializeToString,
            response_deserializer=self._response.FromString)
        return next(iter(call(iter([self._request(**request)]), timeout=30)))

    def services(self, package="grpc.reflection.v1alpha"):
        return sorted(s.name for s in self._ask(package, list_services="*").services.service)

    def files_of(self, symbol):
        """The names of the files that describe a symbol."""
        files = self._ask(file_containing_symbol=symbol).files.file_descriptor_proto
        return [descriptor_pb2.FileDescriptorProto.FromString(f).name for f in files]

    def _learn(self, symbol):
        files = [descriptor_pb2.FileDescriptorProto.FromString(f) for f in
                 self._ask(file_containing_symbol=symbol).files.file_descriptor_proto]
        # Imports come with it, in no order that a pool could take them in.
        waiting = {f.name: f for f in files if f.name not in self._known}
        while waiting:
            for name, file in list(waiting.items()):
                if all(d in self._known or d not in waiting for d in file.dependency):
                    self._pool.Add(file)
                    self._known.add(name)
                    del waiting[name]

    def _method(self, kind, service, method):
        """A callable for the method, and a new request of its type."""
        self._learn(service)
        described = self._pool.FindServiceByName(service).FindMethodByName(method)
        factory = message_factory.MessageFactory(self._pool)
        request = factory.GetPrototype(described.input_type)
        response = factory.GetPrototype(described.output_type)
        return kind(f"/{service}/{method}", request_serializer=request.SerializeToString,
                    response_deserializer=response.FromString), request

    def call(self, service, method, **fields):
        """A unary call of any service the server has, by names alone."""
        return self.begin(service, method, **fields).result()

    def begin(self, service, method, **fields):
        """The same, not waited for."""
        call, request = self._method(self._channel.unary_unary, service, method)
        return call.future(request(**fields), timeout=60)

    def stream(self, service, method, **fields):
        """What a server streams in answer to one request."""
        call, request = self._method(self._channel.unary_stream, service, method)
        return call(request(**fields), timeout=120)

    def is_serving(self):
        call = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=self._health_request.SerializeToString,
            response_deserializer=self._health_response.FromString)
        return call(self._health_request(), timeout=30).status == 1
