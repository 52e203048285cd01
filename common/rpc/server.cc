#include "common/rpc/server.h"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>

namespace conclave {

void MethodTable::CheckTypes(const std::string& name, const google::protobuf::Descriptor* request,
                             const google::protobuf::Descriptor* response) {
  std::string full_name = name.substr(1);
  std::replace(full_name.begin(), full_name.end(), '/', '.');
  const auto* method =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(full_name);
  CHECK(method != nullptr) << name << " is in no service linked into this program";
  CHECK(method->input_type() == request && method->output_type() == response)
      << name << " takes " << method->input_type()->full_name() << " and returns "
      << method->output_type()->full_name();
}

}  // namespace conclave
