# SPDX-License-Identifier: MIT
"""Faults for isa_test.py to find, each an edit of the headers."""

import dataclasses

PROBE = "tests/amd/isa/probe.hip.cpp"
SHIPPED = "lib/amd/kernels/kernels.hip.cpp"
PLATFORM = "device/platform.hpp"
RING = "device/ring.hpp"
SCOPE = "device/scope.hpp"
# On gfx90a an access of agent scope is the same instruction as one of system scope.
NEWER = ("gfx942", "gfx950")


@dataclasses.dataclass
class Plant:
    name: str
    rule: str  # by which it must be found
    edits: list  # (file, text, what takes its place)
    kernel: str  # in which it must be found
    archs: tuple = ()  # empty: all

    @property
    def source(self):
        return SHIPPED if self.kernel.startswith("ferry_") else PROBE


FENCE = '__builtin_amdgcn_fence(__ATOMIC_RELEASE, "");\n'
WAIT = "  __builtin_amdgcn_s_waitcnt(0);\n"
LOAD_ACQUIRE = "return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);"
LOAD_RELAXED = "return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);"
STORE_RELAXED = "__hip_atomic_store(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);"
SYNC = "    release_fence();\n    detail::%s_barrier();\n"
BARE = "    detail::%s_barrier();\n"
MEET = "  release_fence();\n  group.sync();\n"

SINGLE, SHARED = "put_signal_single", "put_signal_shared"
WAVE, GROUP = "submit_wave", "submit_workgroup"
PART, WORDS = "ferry_wide", "ferry_low_latency"

PLANTS = [
    Plant("no wait behind the write-back", "flag", [(PLATFORM, WAIT, "")], PART),
    Plant("no write-back", "release", [(PLATFORM, "  " + FENCE, "")], "team_put_signal_workgroup"),
    Plant("write-back for this GPU only", "scope",
          [(PLATFORM, FENCE, FENCE.replace('""', '"agent"'))], SINGLE, NEWER),
    Plant("no write-back of the L2 on gfx90a", "release",
          [(PLATFORM, FENCE, FENCE.replace('""', '"agent"'))], PART, ("gfx90a",)),
    Plant("doorbell without release", "release",
          [(RING, "store_release(ring.doorbell, end)", "store_relaxed(ring.doorbell, end)")], SINGLE),
    Plant("wptr without release", "release",
          [(RING, "store_release(ring.wptr, end)", "store_relaxed(ring.wptr, end)")], SHARED),
    Plant("doorbell before wptr", "order",
          [(RING, "  store_release(ring.wptr, end);\n  store_release(ring.doorbell, end);\n",
            "  store_release(ring.doorbell, end);\n  store_release(ring.wptr, end);\n")], SHARED),
    Plant("no doorbell", "missing", [(RING, "  store_release(ring.doorbell, end);\n", "")], SINGLE),
    Plant("stamp without release", "release",
          [(RING, "store_release(stamp(r.begin), r.end)", "store_relaxed(stamp(r.begin), r.end)")],
          SHARED),
    Plant("add without release", "release",
          [(PLATFORM, "Word fetch_add(Word* p, Word value) {\n  release_fence();\n",
            "Word fetch_add(Word* p, Word value) {\n")], SHARED),
    Plant("packets after publication", "order",
          [("device/put.hpp", "  std::uint64_t offset = r.offset;\n",
            "  std::uint64_t offset = r.offset;\n  queue.publish(r);\n")], SINGLE),
    Plant("workgroup meets without wait", "barrier",
          [(SCOPE, SYNC % "workgroup", BARE % "workgroup")], PART),
    Plant("wave meets without wait", "barrier", [(SCOPE, SYNC % "wave", BARE % "wave")],
          "team_put_signal_wave"),
    Plant("group submits without meeting", "barrier", [(RING, MEET, "  release_fence();\n")], GROUP),
    Plant("wave submits without meeting", "barrier", [(RING, MEET, "  release_fence();\n")], WAVE),
    Plant("signal before the lanes meet", "barrier",
          [("device/team.hpp", "    scope.sync(); // all parts before the signal", "    //")],
          "team_put_signal_workgroup"),
    Plant("parts announced before the lanes meet", "barrier",
          [("device/wide_exchange.hpp", "    scope.sync(); // every lane's stores", "    //")], PART),
    Plant("buffer handed out without release", "release",
          [("device/wide_exchange.hpp", "store_release(peer.their_ready",
            "store_relaxed(peer.their_ready")], PART),
    Plant("load without acquire", "acquire", [(PLATFORM, LOAD_ACQUIRE, LOAD_RELAXED)], SINGLE),
    Plant("plain load", "missing", [(PLATFORM, LOAD_ACQUIRE, "return *p;")], SINGLE),
    Plant("streaming load of a word", "scalar",
          [(PLATFORM, LOAD_RELAXED, "return __builtin_nontemporal_load(p);")], SINGLE),
    Plant("polling by scalar loads", "scalar",
          [(PLATFORM, LOAD_RELAXED,
            "return *reinterpret_cast<const __attribute__((address_space(4))) Word*>("
            "reinterpret_cast<std::uint64_t>(p));")], WORDS),
    Plant("plain store", "scope", [(PLATFORM, STORE_RELAXED, "*p = value;")], SINGLE, NEWER),
    Plant("store for this GPU only", "scope",
          [(PLATFORM, STORE_RELAXED, STORE_RELAXED.replace("SYSTEM", "AGENT"))], SINGLE, NEWER),
    Plant("load for this GPU only", "scope",
          [(PLATFORM, LOAD_RELAXED, LOAD_RELAXED.replace("SYSTEM", "AGENT"))], SINGLE, NEWER),
    Plant("data and flag apart", "missing",
          [("device/low_latency.hpp",
            "    store_relaxed(to + i, flag | gather_word(peer.from, peer.send_bytes, i));\n",
            "    auto* const half = reinterpret_cast<std::uint32_t*>(to + i);\n"
            "    store_relaxed(half, gather_word(peer.from, peer.send_bytes, i));\n"
            "    store_relaxed(half + 1, static_cast<std::uint32_t>(flag >> 32));\n")], WORDS),
    Plant("copies without streaming", "missing",
          [(PLATFORM, "return __builtin_bit_cast(\n      Vec16, __builtin_nontemporal_load("
            "reinterpret_cast<const detail::FourWords*>(p)));", "return *p;")], PART),
]
