#include "common/transport/reflection.h"

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace conclave {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using Strings = std::vector<std::string>;

constexpr int kNotFound = 5;
constexpr int kUnimplemented = 12;

const Reflection& OfTwoServices() {
  static const auto* const reflection = new Reflection({"b.Two", "a.One"});
  return *reflection;
}

ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
  return OfTwoServices().Answer(request);
}

Strings FilesIn(const ServerReflectionResponse& response) {
  Strings names;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    names.push_back(file.name());
  }
  return names;
}

const Strings kErrorsFiles = {"conclave/v1/errors.proto", "google/protobuf/any.proto",
                              "google/protobuf/descriptor.proto"};

TEST(ReflectionTest, ServicesAreListedByName) {
  ServerReflectionRequest request;
  request.set_host("here");
  request.set_list_services("*");
  const auto response = Ask(request);
  EXPECT_EQ(response.valid_host(), "here");
  EXPECT_EQ(response.original_request().list_services(), "*");
  ASSERT_EQ(response.list_services_response().service_size(), 2);
  EXPECT_EQ(response.list_services_response().service(0).name(), "a.One");
  EXPECT_EQ(response.list_services_response().service(1).name(), "b.Two");
}

TEST(ReflectionTest, AFileComesWithItsImportsEachOnce) {
  ServerReflectionRequest request;
  request.set_file_by_filename("conclave/v1/errors.proto");
  EXPECT_EQ(FilesIn(Ask(request)), kErrorsFiles);
}

TEST(ReflectionTest, SymbolsOfEveryKindAreFound) {
  for (const char* symbol : {"conclave.v1.Error", "conclave.v1.Error.code", "conclave.v1.ErrorCode",
                             "conclave.v1.retriable", "conclave.v1.NOT_CONTROLLER"}) {
    ServerReflectionRequest request;
    request.set_file_containing_symbol(symbol);
    EXPECT_EQ(FilesIn(Ask(request)), kErrorsFiles) << symbol;
  }
  for (const std::string package : {"grpc.reflection.v1", "grpc.reflection.v1alpha"}) {
    ServerReflectionRequest request;
    request.set_file_containing_symbol(package + ".ServerReflection.ServerReflectionInfo");
    EXPECT_EQ(FilesIn(Ask(request)).size(), 1u) << package;
  }
  ServerReflectionRequest request;
  request.set_file_containing_symbol("grpc.health.v1.Health");
  EXPECT_EQ(FilesIn(Ask(request)), Strings{"grpc/health/v1/health.proto"});
}

TEST(ReflectionTest, ExtensionsAreFoundByTypeAndNumber) {
  ServerReflectionRequest request;
  request.mutable_file_containing_extension()->set_containing_type(
      "google.protobuf.EnumValueOptions");
  request.mutable_file_containing_extension()->set_extension_number(50101);
  EXPECT_EQ(FilesIn(Ask(request)), kErrorsFiles);

  ServerReflectionRequest all;
  all.set_all_extension_numbers_of_type("google.protobuf.EnumValueOptions");
  const auto response = Ask(all);
  const auto& numbers = response.all_extension_numbers_response();
  EXPECT_EQ(numbers.base_type_name(), "google.protobuf.EnumValueOptions");
  EXPECT_EQ(std::vector<int>(numbers.extension_number().begin(), numbers.extension_number().end()),
            (std::vector<int>{50100, 50101}));
}

TEST(ReflectionTest, AMessageWithoutExtensionsHasNone) {
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("conclave.v1.Error");
  const auto response = Ask(request);
  EXPECT_TRUE(response.has_all_extension_numbers_response());
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(), 0);
}

TEST(ReflectionTest, WhatIsNotThereIsNamed) {
  std::vector<ServerReflectionRequest> requests(5);
  requests[0].set_file_by_filename("no/such");
  requests[1].set_file_containing_symbol("no/such");
  requests[2].set_all_extension_numbers_of_type("no/such");
  requests[3].mutable_file_containing_extension()->set_containing_type("no/such");
  requests[4].mutable_file_containing_extension()->set_containing_type(
      "google.protobuf.EnumValueOptions");
  requests[4].mutable_file_containing_extension()->set_extension_number(7);
  for (const auto& request : requests) {
    const auto response = Ask(request);
    EXPECT_EQ(response.error_response().error_code(), kNotFound) << request.DebugString();
  }
  EXPECT_NE(Ask(requests[0]).error_response().error_message().find("no/such"), std::string::npos);
}

TEST(ReflectionTest, ARequestForNothingKnownIsUnimplemented) {
  EXPECT_EQ(Ask({}).error_response().error_code(), kUnimplemented);
}

}  // namespace
}  // namespace conclave
