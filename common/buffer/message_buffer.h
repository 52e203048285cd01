#ifndef CONCLAVE_COMMON_BUFFER_MESSAGE_BUFFER_H_
#define CONCLAVE_COMMON_BUFFER_MESSAGE_BUFFER_H_

#include "common/buffer/buffer.h"

namespace google::protobuf {
class MessageLite;
}

namespace conclave {

// A protobuf message as the bytes of its wire form.
Buffer SerializeToBuffer(const google::protobuf::MessageLite& message);

// False if the bytes are no such message; `message` is then unspecified. Reads slice by slice,
// without joining them first.
bool ParseFromBuffer(const Buffer& buffer, google::protobuf::MessageLite* message);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_BUFFER_MESSAGE_BUFFER_H_
