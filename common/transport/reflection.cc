#include "common/transport/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace conclave {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void SetError(absl::StatusCode code, std::string message, ServerReflectionResponse& response) {
  auto& error = *response.mutable_error_response();
  error.set_error_code(static_cast<int>(code));
  error.set_error_message(std::move(message));
}

// The file first, then what it imports, each once.
void AddWithImports(const FileDescriptor& file, std::set<std::string>& seen,
                    grpc::reflection::v1::FileDescriptorResponse& response) {
  if (!seen.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddWithImports(*file.dependency(i), seen, response);
  }
}

void SetFile(const FileDescriptor* file, const std::string& what,
             ServerReflectionResponse& response) {
  if (file == nullptr) {
    return SetError(absl::StatusCode::kNotFound, absl::StrCat("this server knows no ", what),
                    response);
  }
  std::set<std::string> seen;
  AddWithImports(*file, seen, *response.mutable_file_descriptor_response());
}

const FileDescriptor* FileOfExtension(const std::string& type, int number) {
  const Descriptor* extended = Pool().FindMessageTypeByName(type);
  if (extended == nullptr) return nullptr;
  const FieldDescriptor* extension = Pool().FindExtensionByNumber(extended, number);
  return extension == nullptr ? nullptr : extension->file();
}

void SetExtensionNumbers(const std::string& type, ServerReflectionResponse& response) {
  const Descriptor* extended = Pool().FindMessageTypeByName(type);
  if (extended == nullptr) {
    return SetError(absl::StatusCode::kNotFound,
                    absl::StrCat("this server knows no message ", type), response);
  }
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(extended, &extensions);
  std::set<int> numbers;
  for (const FieldDescriptor* extension : extensions) numbers.insert(extension->number());
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type);
  for (const int number : numbers) answer.add_extension_number(number);
}

}  // namespace

ServerReflectionResponse Reflection::Answer(const ServerReflectionRequest& request) const {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      SetFile(Pool().FindFileByName(request.file_by_filename()),
              absl::StrCat("file ", request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(Pool().FindFileContainingSymbol(request.file_containing_symbol()),
              absl::StrCat("symbol ", request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& asked = request.file_containing_extension();
      SetFile(FileOfExtension(asked.containing_type(), asked.extension_number()),
              absl::StrCat("extension ", asked.extension_number(), " of message ",
                           asked.containing_type()),
              response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      response.mutable_list_services_response();
      for (const std::string& service : services_) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(absl::StatusCode::kUnimplemented,
               "the request asks for nothing that this server's version of reflection knows",
               response);
      break;
  }
  return response;
}

}  // namespace conclave
