// SPDX-License-Identifier: MIT
#pragma once

// Puts and signals on rings of SDMA packets, callable from host code and from kernels: one header
// for all of them. A kernel takes a RingHandle by value and posts through SingleProducer or
// MultiProducer.
//
//   ferry::device::SingleProducer queue(handle);
//   auto posted = ferry::device::put_signal(queue, destination, source, bytes, signal);

#include "device/packet.hpp"
#include "device/platform.hpp"
#include "device/put.hpp"
#include "device/ring.hpp"
#include "device/signal.hpp"
