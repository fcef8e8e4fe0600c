// SPDX-License-Identifier: MIT
#pragma once

// Puts and signals on rings of SDMA packets, callable from host code and from kernels: one header
// for all of them. A kernel takes a TeamHandle by value and calls as a thread, a wave or a
// workgroup; or it takes a RingHandle and posts through SingleProducer or MultiProducer.
//
//   ferry::device::Workgroup scope;
//   auto posted = ferry::device::put_signal(team, peer, offset, source, bytes, 1, scope);
//   auto status = ferry::device::alltoall(team, offset, source, bytes, Attempts(1 << 20), scope);

#include "device/barrier.hpp"
#include "device/collective.hpp"
#include "device/packet.hpp"
#include "device/platform.hpp"
#include "device/put.hpp"
#include "device/ring.hpp"
#include "device/rma.hpp"
#include "device/scope.hpp"
#include "device/signal.hpp"
#include "device/start.hpp"
#include "device/team.hpp"
#include "device/threshold.hpp"
