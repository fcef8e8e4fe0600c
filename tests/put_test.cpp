// SPDX-License-Identifier: MIT
#include "device/put.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ferry/device.hpp"
#include "lib/engine/cross_memory.hpp"
#include "lib/engine/queue.hpp"

using namespace ferry::device;
using ferry::core::Producers;
using ferry::core::Queue;
using ferry::core::QueueState;
using ferry::core::Window;
using ferry::core::WindowSet;
using Bytes = std::vector<unsigned char>;

namespace {

constexpr std::size_t kCanary = 64;
constexpr unsigned char kGuard = 0xc9;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<unsigned char>((i * 131 + seed * 7919u + (i >> 8)) >> 1);
  }
  return data;
}

Window window_of(const void* memory, std::size_t bytes, bool writable) {
  Window w;
  w.base = reinterpret_cast<std::uint64_t>(memory);
  w.bytes = bytes;
  w.writable = writable;
  w.name = "test";
  return w;
}

// A queue over a source, a destination between canaries, and a signal.
struct Fixture {
  explicit Fixture(std::size_t bytes, std::size_t ring = 4096, Producers kind = Producers::one)
      : source(pattern(bytes, 1)), memory(bytes + 2 * kCanary, kGuard), queue(ring, kind) {
    if (bytes != 0) windows.add(window_of(source.data(), bytes, false));
    windows.add(window_of(memory.data(), memory.size(), true));
    windows.add(window_of(&signal, sizeof signal, true));
    queue.set_windows(&windows);
  }
  unsigned char* destination() { return memory.data() + kCanary; }
  // Everything arrived, and nothing beside it.
  bool delivered(std::size_t offset, std::size_t bytes) const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::size_t at = i - kCanary - offset; // wraps below the range
      if (memory[i] != (at < bytes ? source[offset + at] : kGuard)) return false;
    }
    return true;
  }

  Bytes source;
  Bytes memory;
  alignas(8) std::uint64_t signal = 0;
  WindowSet windows;
  Queue queue;
};

} // namespace

TEST_CASE("a put is cut into segments and its signal rides behind the last one") {
  Fixture f(100);
  f.queue.ring().max_copy_bytes = 33;
  const SingleProducer queue(f.queue.ring());
  const PutResult r = put_signal(queue, f.destination(), f.source.data(), 100, &f.signal, 5);
  REQUIRE(r.status == PutStatus::done);
  CHECK(r.ticket == 4 * 28 + 32);
  const std::uint32_t* dw = f.queue.image();
  const std::uint32_t counts[] = {32, 32, 32, 0};
  for (std::size_t i = 0; i < 4; ++i, dw += 7) {
    CHECK(dw[0] == 1);
    CHECK(dw[1] == counts[i]);
    CHECK(dw[3] == static_cast<std::uint32_t>(detail::address_of(f.source.data()) + 33 * i));
    CHECK(dw[5] == static_cast<std::uint32_t>(detail::address_of(f.destination()) + 33 * i));
  }
  CHECK(dw[0] == 0x5e00'000a);
  CHECK(dw[3] == 5);
  CHECK(f.queue.consume(4) == QueueState::advanced); // the copies only
  CHECK(f.delivered(0, 100));
  CHECK(f.signal == 0);
  CHECK(f.queue.consume(4) == QueueState::drained);
  CHECK(f.signal == 5);
}

TEST_CASE("sizes around every boundary arrive exactly") {
  for (const std::size_t limit : {std::size_t{1}, std::size_t{16}, std::size_t{64}}) {
    for (const std::size_t bytes : {0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
      CAPTURE(limit);
      CAPTURE(bytes);
      Fixture f(bytes, std::size_t{1} << 14);
      f.queue.ring().max_copy_bytes = limit;
      const SingleProducer queue(f.queue.ring());
      CHECK(
          put_signal(queue, f.destination(), f.source.data(), bytes, &f.signal).status ==
          PutStatus::done);
      CHECK(f.queue.consume(1000) == QueueState::drained);
      CHECK(f.delivered(0, bytes));
      CHECK(f.signal == 1);
      CHECK(f.queue.consumed() == (bytes + limit - 1) / limit * 28 + 32);
    }
  }
}

TEST_CASE("a put of more than a hardware packet is segmented by the handle's default") {
  Queue queue(4096);
  const SingleProducer producer(queue.ring());
  void* const anywhere = reinterpret_cast<void*>(0x10000);
  const std::uint64_t bytes = 2 * kSafeCopyBytes + 1;
  CHECK(put(producer, anywhere, anywhere, bytes).ticket == 3 * 28);
  CHECK(queue.image()[1] == kSafeCopyBytes - 1);
  CHECK(queue.image()[8] == kSafeCopyBytes - 1);
  CHECK(queue.image()[15] == 0);
}

TEST_CASE("zero bytes post no copy and still signal") {
  Fixture f(0);
  const SingleProducer queue(f.queue.ring());
  CHECK(put(queue, nullptr, nullptr, 0).status == PutStatus::done);
  CHECK(f.queue.written() == 0);
  CHECK(put_signal(queue, nullptr, nullptr, 0, &f.signal).status == PutStatus::done);
  CHECK(f.queue.written() == 32);
  CHECK(f.queue.consume(1) == QueueState::drained);
  CHECK(f.signal == 1);
}

TEST_CASE("what cannot be posted posts nothing") {
  Fixture f(64, 256);
  const SingleProducer queue(f.queue.ring());
  auto* const odd = reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(&f.signal) + 4);
  void* const to = f.destination();
  void* const from = f.source.data();
  CHECK(put_signal(queue, to, from, 8, odd).status == PutStatus::bad_address);
  CHECK(put_signal(queue, to, from, 8, nullptr).status == PutStatus::bad_address);
  CHECK(put(queue, nullptr, from, 8).status == PutStatus::bad_address);
  CHECK(put(queue, to, nullptr, 8).status == PutStatus::bad_address);
  CHECK(put(queue, to, from, ~std::uint64_t{0}).status == PutStatus::too_long);
  CHECK(put(queue, to, from, 4 * kSafeCopyBytes + 1).status == PutStatus::too_long); // 5 > 128 B
  CHECK(put_signal(queue, to, from, 4 * kSafeCopyBytes, &f.signal).status == PutStatus::too_long);
  for (const std::uint64_t limit : {std::uint64_t{0}, kMaxCopyBytes + 1}) {
    RingHandle wrong = f.queue.ring();
    wrong.max_copy_bytes = limit;
    CHECK(put(SingleProducer(wrong), to, from, 8).status == PutStatus::too_long);
  }
  CHECK(f.queue.written() == 0);
  CHECK(*f.queue.ring().reserved == 0);
}

TEST_CASE("a copy that wraps around the address space becomes NOPs") {
  Fixture f(64);
  f.queue.ring().max_copy_bytes = 16;
  const SingleProducer queue(f.queue.ring());
  void* const last = reinterpret_cast<void*>(~std::uint64_t{0} - 15);
  CHECK(put(queue, last, f.source.data(), 32).status == PutStatus::bad_address);
  CHECK(f.queue.consume(10) == QueueState::drained);
}

TEST_CASE("a full ring is reported, and takes the put once there is room") {
  Fixture f(64, 128);
  const SingleProducer queue(f.queue.ring());
  const auto post = [&] {
    return put_signal(queue, f.destination(), f.source.data(), 64, &f.signal).status;
  };
  CHECK(post() == PutStatus::done);
  CHECK(post() == PutStatus::done);
  CHECK(post() == PutStatus::would_block);
  CHECK(f.queue.written() == 120);
  CHECK(f.queue.consume(2) == QueueState::advanced);
  CHECK(post() == PutStatus::would_block); // 8 bytes of padding, and never full to the last byte
  CHECK(f.queue.consume(1) == QueueState::advanced);
  CHECK(post() == PutStatus::done);
  CHECK(f.queue.consume(10) == QueueState::drained);
  CHECK(f.signal == 3);
}

TEST_CASE("flush waits for one operation, quiet for the queue, both within a budget") {
  Fixture f(64);
  const SingleProducer queue(f.queue.ring());
  const PutResult first = put(queue, f.destination(), f.source.data(), 8);
  const PutResult second = put(queue, f.destination() + 8, f.source.data() + 8, 8);
  CHECK_FALSE(flush(queue, first, Attempts(10)));
  CHECK(f.queue.consume(1) == QueueState::advanced);
  CHECK(flush(queue, first, Attempts(0)));
  CHECK_FALSE(flush(queue, second, Attempts(10)));
  CHECK_FALSE(quiet(queue, Attempts(10)));
  int looks = 0;
  CHECK(quiet(queue, [&] { return ++looks < 5 || f.queue.consume(1) == QueueState::drained; }));
  CHECK(looks == 5);
  CHECK(flush(queue, second, Attempts(0)));
  CHECK(f.delivered(0, 16));
  CHECK(flush(queue, put(queue, nullptr, nullptr, 0), Attempts(0))); // nothing to wait for
}

TEST_CASE("a signal is waited for with >=, and the wait gives up") {
  std::uint64_t word = 3;
  CHECK(test_signal(&word, 2));
  CHECK(test_signal(&word, 3));
  CHECK_FALSE(test_signal(&word, 4));
  CHECK(wait_signal(&word, 3, Attempts(0)));
  CHECK_FALSE(wait_signal(&word, 4, Attempts(1000)));
  const std::jthread writer([&word] { fetch_add(&word, std::uint64_t{7}); });
  CHECK(wait_signal(&word, 9, [] {
    std::this_thread::yield();
    return true;
  }));
}

TEST_CASE("a signal follows what was posted before it") {
  Fixture f(4096);
  const SingleProducer queue(f.queue.ring());
  REQUIRE(put(queue, f.destination(), f.source.data(), 4096).status == PutStatus::done);
  REQUIRE(signal(queue, &f.signal, 2).status == PutStatus::done);
  std::jthread consumer([&f] { CHECK(f.queue.consume(10) == QueueState::drained); });
  const bool arrived = wait_signal(&f.signal, 2, [] {
    std::this_thread::yield();
    return true;
  });
  CHECK(arrived);
  CHECK(f.delivered(0, 4096)); // read while the consumer may still be running
}

TEST_CASE("four threads put through one queue") {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kPuts = 2000;
  constexpr std::size_t kBytes = 24;
  Fixture f(kThreads * kPuts * kBytes, 1024, Producers::several);
  f.queue.ring().max_copy_bytes = 16; // two segments each
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&f, t](const std::stop_token& stop) {
      const MultiProducer queue(f.queue.ring());
      for (std::size_t i = 0; i < kPuts && !stop.stop_requested();) {
        const std::size_t at = (t * kPuts + i) * kBytes;
        const PutResult r =
            put_signal(queue, f.destination() + at, f.source.data() + at, kBytes, &f.signal);
        if (r.status == PutStatus::done) ++i;
        if (r.status == PutStatus::would_block) std::this_thread::yield();
      }
    });
  }
  for (QueueState s = QueueState::drained; f.signal < kThreads * kPuts;) {
    s = f.queue.consume(64);
    if (s == QueueState::failed) break;
    if (s == QueueState::drained) std::this_thread::yield();
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  CHECK(f.queue.error().cause == "");
  CHECK(f.signal == kThreads * kPuts);
  CHECK(f.delivered(0, f.source.size()));
}

namespace {

// A forked process with a copy of `memory`, which it checks when it is told to end.
class Child {
 public:
  Child(Bytes& memory, const Bytes& expected) {
    std::array<int, 2> pipe_ends{};
    REQUIRE(pipe(pipe_ends.data()) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      close(pipe_ends[1]);
      char order = 0;
      const bool told = read(pipe_ends[0], &order, 1) == 1;
      _exit(told && memory == expected ? 0 : 1);
    }
    close(pipe_ends[0]);
    order_ = pipe_ends[1];
  }
  ~Child() { end(); }
  int pid() const { return pid_; }
  // True when its memory was as expected. It is gone afterwards.
  bool end() {
    if (order_ < 0) return false;
    const bool told = ::write(order_, "x", 1) == 1;
    close(order_);
    order_ = -1;
    int status = 0;
    return waitpid(pid_, &status, 0) == pid_ && told && status == 0;
  }

 private:
  int pid_ = -1;
  int order_ = -1;
};

} // namespace

TEST_CASE("memory of another process is read and written through its window") {
  constexpr std::size_t kBytes = 100000;
  constexpr std::uint64_t kBase = 0x5000'0000'0000; // nothing of this process
  Fixture f(kBytes, 8192);
  Bytes theirs = pattern(kBytes, 2);
  const Bytes original = theirs;
  Bytes expected = theirs;
  std::copy_n(f.source.begin() + 100, 70001, expected.begin() + 7);
  std::fill_n(expected.begin() + 80000, 8192, static_cast<unsigned char>(0x6b));
  Child child(theirs, expected);
  std::fill(theirs.begin(), theirs.end(), kGuard); // ours, no longer the child's
  if (ferry::core::read_process(child.pid(), theirs.data(), detail::address_of(theirs.data()), 1) ==
      EPERM) {
    MESSAGE("not tested: cross-memory attach is not permitted here");
    return;
  }
  f.windows.add({kBase, kBytes, true, 1, child.pid(), detail::address_of(theirs.data()), "theirs"});
  const SingleProducer queue(f.queue.ring());
  const auto remote = [](std::size_t offset) { return reinterpret_cast<char*>(kBase + offset); };
  REQUIRE(put(queue, f.destination(), remote(0), kBytes).status == PutStatus::done);
  REQUIRE(put(queue, remote(7), f.source.data() + 100, 70001).status == PutStatus::done);
  FillPacket fill{};
  REQUIRE(build_fill(fill, kBase + 80000, 0x6b6b'6b6b, 8192) == PacketStatus::ok);
  const Reservation r = queue.reserve(sizeof fill);
  REQUIRE(r);
  place(queue.ring(), r.offset, fill.dw, 5);
  queue.publish(r);
  CHECK(f.queue.consume(100) == QueueState::drained);
  CHECK(f.queue.error().cause == "");
  CHECK(std::equal(original.begin(), original.end(), f.destination()));
  CHECK(child.end());
  REQUIRE(put(queue, f.destination(), remote(0), 8).status == PutStatus::done);
  CHECK(f.queue.consume(1) == QueueState::failed);
  CHECK(f.queue.error().kind == ferry::core::ErrorKind::peer_died);
  CHECK(f.queue.error().cause.find("window theirs of rank 1") != std::string::npos);
  CHECK(f.queue.error().cause.find("No such process") != std::string::npos);
}

TEST_CASE("a transfer that stops at a page which is not there is an error") {
  constexpr std::size_t kPage = 4096;
  void* const mapped =
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  char* const pages = static_cast<char*>(mapped);
  REQUIRE(munmap(pages + kPage, kPage) == 0);
  Bytes mine(2 * kPage);
  const std::uint64_t remote = detail::address_of(pages);
  CHECK(ferry::core::read_process(getpid(), mine.data(), remote, kPage) == 0);
  CHECK(ferry::core::read_process(getpid(), mine.data(), remote, kPage + 1) == EFAULT);
  CHECK(ferry::core::write_process(getpid(), remote, mine.data(), kPage) == 0);
  CHECK(ferry::core::write_process(getpid(), remote + 8, mine.data(), kPage) == EFAULT);
  munmap(pages, kPage);
}

TEST_CASE("what cannot be done in another process is an error") {
  const std::uint64_t nowhere = 8; // not mapped
  const auto self = static_cast<int>(getpid());
  const std::uint64_t base = 0x5000'0000'0000;
  const auto remote = reinterpret_cast<void*>(base);
  for (const int what : {0, 1, 2}) {
    Fixture f(64);
    f.windows.add({base, 64, true, 1, self, nowhere, "theirs"});
    const SingleProducer queue(f.queue.ring());
    if (what == 0) CHECK(put(queue, remote, f.source.data(), 8).status == PutStatus::done);
    if (what == 1) CHECK(put(queue, remote, remote, 8).status == PutStatus::done);
    if (what == 2) {
      CHECK(signal(queue, static_cast<std::uint64_t*>(remote)).status == PutStatus::done);
    }
    CHECK(f.queue.consume(1) == QueueState::failed);
    const std::array<std::string, 3> texts = {
        "window theirs of rank 1", "both lie in other", "cannot map"};
    const std::string text = texts[static_cast<std::size_t>(what)];
    CHECK_MESSAGE(f.queue.error().cause.find(text) != std::string::npos, f.queue.error().cause);
  }
}
