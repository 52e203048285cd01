#ifndef CONCLAVE_COMMON_BUFFER_PAYLOAD_H_
#define CONCLAVE_COMMON_BUFFER_PAYLOAD_H_

#include <string>
#include <vector>

#include "common/buffer/buffer.h"
#include "common/buffer/message_buffer.h"

// Messages that carry record batches: a repeated field of parts, each with a payload, a field of
// type bytes. Parsed and serialized by generated code, payloads are copied each time; here they
// stay the slices that they came in, and the wire form is the same (architecture, rule 5).
namespace conclave {

// Field numbers.
struct PayloadPath {
  int parts = 0;
  int payload = 0;
};

// Specialized for each message that carries payloads: `static constexpr PayloadPath kPath`.
template <class Message>
struct PayloadPathOf;

// A message and the payloads of its parts, in order; the field itself is empty in the message.
template <class Message>
struct WithPayloads {
  Message message;
  std::vector<Buffer> payloads;

  static auto descriptor() { return Message::descriptor(); }
};

// The wire form of a message without its payloads, which go to `payloads`, one a part, empty where
// there was none. False for what is no message; what is left is for the generated code to judge.
bool DetachPayloads(const Buffer& wire, PayloadPath path, std::string* rest,
                    std::vector<Buffer>* payloads);

// The inverse. `rest` is the wire form of a message with as many parts as there are payloads.
Buffer AttachPayloads(const std::string& rest, PayloadPath path,
                      const std::vector<Buffer>& payloads);

template <class Message>
bool ParseFromBuffer(const Buffer& buffer, WithPayloads<Message>* carrying) {
  std::string rest;
  return DetachPayloads(buffer, PayloadPathOf<Message>::kPath, &rest, &carrying->payloads) &&
         carrying->message.ParseFromString(rest);
}

template <class Message>
Buffer SerializeToBuffer(const WithPayloads<Message>& carrying) {
  return AttachPayloads(carrying.message.SerializeAsString(), PayloadPathOf<Message>::kPath,
                        carrying.payloads);
}

}  // namespace conclave

#endif  // CONCLAVE_COMMON_BUFFER_PAYLOAD_H_
