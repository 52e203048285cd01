#ifndef CONCLAVE_COMMON_TRANSPORT_COMPLETION_H_
#define CONCLAVE_COMMON_TRANSPORT_COMPLETION_H_

namespace conclave::grpc_transport {

// What is asked for under the address of one of these, on a poller's queue, is told to it once it
// is done. It lives until then.
class Completion {
 public:
  // Called by a thread that waits for gRPC, and may start what comes next. `ok` as gRPC's
  // completion queue tells it.
  virtual void OnCompleted(bool ok) = 0;

 protected:
  ~Completion() = default;
};

// Tells a member function of whoever contains it.
template <class Owner>
class MemberCompletion final : public Completion {
 public:
  using Member = void (Owner::*)(bool ok);
  MemberCompletion(Owner* owner, Member member) : owner_(owner), member_(member) {}
  MemberCompletion(const MemberCompletion&) = delete;
  MemberCompletion& operator=(const MemberCompletion&) = delete;

  void OnCompleted(bool ok) override { (owner_->*member_)(ok); }
  // For gRPC, which hands back what it was given: always as a Completion.
  void* tag() { return static_cast<Completion*>(this); }

 private:
  Owner* const owner_;
  const Member member_;
};

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_COMPLETION_H_
