#ifndef CONCLAVE_CLIENT_BASE_LIFETIME_H_
#define CONCLAVE_CLIENT_BASE_LIFETIME_H_

#include <memory>
#include <utility>

namespace conclave {

// Keeps callbacks from reaching an object that is gone. A member of it, destroyed on the executor
// the callbacks run on; declared last, so that it goes first.
class Lifetime {
 public:
  // `task`, which does nothing once this has been destroyed.
  template <class Task>
  auto Guard(Task task) const {
    return [alive = std::weak_ptr<char>(alive_), task = std::move(task)](auto&&... args) mutable {
      if (!alive.expired()) task(std::forward<decltype(args)>(args)...);
    };
  }

 private:
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_BASE_LIFETIME_H_
