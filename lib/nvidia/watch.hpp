// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace ferry::nvidia {

// Looks ten times a second after starts that only a stream waits for, while there are any: nobody
// else would notice that a peer has ended.
class Watch {
 public:
  // Of this process; its thread starts with the first start on a stream.
  static Watch& instance();

  // `look` says whether to look again. It is not called any more once remove() has returned.
  void add(const void* owner, std::function<bool()> look);
  void remove(const void* owner);

 private:
  Watch() = default;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, std::function<bool()>> looks_;
  bool running_ = false;
};

} // namespace ferry::nvidia
