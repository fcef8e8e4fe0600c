// SPDX-License-Identifier: MIT
#pragma once

// The fields of every packet. Where generations differ, a field stands here once for each layout.
// Scopes are preset to the system: below it an engine does not see what other agents write.

#include <cstdint>

#include "generation.hpp"
#include "packet_field.hpp"

namespace ferry::device {

namespace fields {

using enum FieldId;

inline constexpr Field kNop[] = {count(dwords, 0, 16, 14)};
inline constexpr Field kCopyHeader[] = {
    option(encrypt, 0, 16, 1, kGfx9Hardware), option(tmz, 0, 18, 1, kHardware),
    option(npd, 0, 28, 1, kOss7, 1)};
// What follows the header, or the wait block of a fused copy: dword 0 is the byte count.
inline constexpr Field kCopyBody[] = {
    count(bytes, 0, 0, 22, only(Generation::gfx90a)),
    count(bytes, 0, 0, 30, kEvery & ~only(Generation::gfx90a)),
    option(destination_sw, 1, 16, 2, kGfx9Hardware),
    option(destination_ha, 1, 22, 1, kGfx9Hardware),
    option(source_sw, 1, 24, 2, kGfx9Hardware),
    option(source_ha, 1, 30, 1, kGfx9Hardware),
    scope_at(destination_scope, 1, 18),
    option(destination_hint, 1, 20, 3, kOss7),
    scope_at(source_scope, 1, 26),
    option(source_hint, 1, 28, 3, kOss7),
    address(source, 2),
    address(destination, 4)};
inline constexpr Field kWaitBlock[] = {
    {wait_function, Meaning::function, 0, 0, 3, kOss7, 1, kPollAtLeast},
    scope_at(wait_scope, 0, 18),
    option(wait_hint, 0, 20, 3, kOss7),
    address(wait_address, 1, 8),
    data(wait_reference, 3, 64),
    data(wait_mask, 5, 64, ~std::uint64_t{0})};
inline constexpr Field kSignalBlock[] = {
    {signal_operation, Meaning::operation, 0, 0, 7, kOss7, 1, kAtomicAdd64NoReturn},
    scope_at(signal_scope, 0, 18),
    option(signal_hint, 0, 20, 3, kOss7),
    address(signal_address, 1, 8),
    data(signal_value, 3, 64)};
inline constexpr Field kCopyTwo[] = {
    option(encrypt, 0, 16, 1, kGfx9Hardware),
    option(tmz, 0, 18, 1, kGfx9Hardware),
    count(bytes, 1, 0, 22, only(Generation::gfx90a)),
    count(bytes, 1, 0, 30, kEvery & ~only(Generation::gfx90a)),
    option(destination_2_sw, 2, 8, 2, kGfx9Hardware),
    option(destination_sw, 2, 16, 2, kGfx9Hardware),
    option(source_sw, 2, 24, 2, kGfx9Hardware),
    address(source, 3),
    address(destination, 5, 32),
    address(destination_2, 7, 32)};
inline constexpr Field kSwap[] = {count(bytes, 1, 0, 30), address(first, 3), address(second, 5)};

inline constexpr Field kSubwindow[] = {
    option(tmz, 0, 18, 1, kHardware),
    option(npd, 0, 28, 1, kOss7, 1),
    number(element_log2, 0, 29, 3),
    address(source, 1, 4),
    number(source_x, 3, 0, 14, kGfx9),
    number(source_y, 3, 16, 14, kGfx9),
    number(source_z, 4, 0, 11, kGfx9),
    count(source_pitch, 4, 13, 19, kGfx9),
    count(source_slice_pitch, 5, 0, 28, kGfx9),
    number(source_x, 3, 0, 16, kOss7),
    number(source_y, 3, 16, 16, kOss7),
    number(source_z, 4, 0, 14, kOss7),
    count(source_pitch, 4, 16, 16, kOss7),
    count(source_slice_pitch, 5, 0, 32, kOss7),
    address(destination, 6, 4),
    number(destination_x, 8, 0, 14, kGfx9),
    number(destination_y, 8, 16, 14, kGfx9),
    number(destination_z, 9, 0, 11, kGfx9),
    count(destination_pitch, 9, 13, 19, kGfx9),
    count(destination_slice_pitch, 10, 0, 28, kGfx9),
    number(destination_x, 8, 0, 16, kOss7),
    number(destination_y, 8, 16, 16, kOss7),
    number(destination_z, 9, 0, 14, kOss7),
    count(destination_pitch, 9, 16, 16, kOss7),
    count(destination_slice_pitch, 10, 0, 32, kOss7),
    count(rect_x, 11, 0, 14, kGfx9),
    count(rect_y, 11, 16, 14, kGfx9),
    count(rect_z, 12, 0, 11, kGfx9),
    option(destination_sw, 12, 16, 2, kGfx9Hardware),
    option(source_sw, 12, 24, 2, kGfx9Hardware),
    count(rect_x, 11, 0, 16, kOss7),
    count(rect_y, 11, 16, 16, kOss7),
    count(rect_z, 12, 0, 14, kOss7),
    scope_at(destination_scope, 12, 18),
    option(destination_hint, 12, 20, 3, kOss7),
    scope_at(source_scope, 12, 26),
    option(source_hint, 12, 28, 3, kOss7)};

// x, pitch and rect_x in bytes, y in rows. Of one slice, whose pitch is stored as it is.
inline constexpr Field kSubwindowLarge[] = {
    option(tmz, 0, 18, 1, kGfx9Hardware),
    option(cpv, 0, 19, 1, kGfx9Hardware),
    address(source, 1),
    number(source_x, 3, 0, 32),
    number(source_y, 4, 0, 32),
    number(source_z, 5, 0, 32),
    count(source_pitch, 6, 0, 32),
    number(source_slice_pitch, 7, 0, 48),
    address(destination, 9),
    number(destination_x, 11, 0, 32),
    number(destination_y, 12, 0, 32),
    number(destination_z, 13, 0, 32),
    count(destination_pitch, 14, 0, 32),
    number(destination_slice_pitch, 15, 0, 48),
    option(destination_sw, 16, 16, 2, kGfx9Hardware),
    option(destination_policy, 16, 18, 3, kGfx9Hardware),
    option(source_sw, 16, 24, 2, kGfx9Hardware),
    option(source_policy, 16, 26, 3, kGfx9Hardware),
    count(rect_x, 17, 0, 32),
    count(rect_y, 18, 0, 32),
    count(rect_z, 19, 0, 32)};

inline constexpr Field kWrite[] = {
    option(encrypt, 0, 16, 1, kGfx9Hardware),
    option(tmz, 0, 18, 1, kHardware),
    address(destination, 1, 4),
    count(dwords, 3, 0, 20),
    option(sw, 3, 24, 2, kGfx9Hardware),
    option(sys, 3, 20, 1, kOss7),
    option(snp, 3, 22, 1, kOss7),
    option(gpa, 3, 23, 1, kOss7),
    option(mtype, 3, 24, 2, kOss7),
    scope_at(scope, 3, 26),
    option(hint, 3, 28, 3, kOss7)};
// Bytes - 1 of a dword multiple: what every reader that counts in bytes agrees on.
inline constexpr Field kFill[] = {
    option(sw, 0, 16, 2, kGfx9Hardware),
    scope_at(scope, 0, 24),
    option(hint, 0, 26, 3, kOss7),
    option(npd, 0, 29, 1, kOss7, 1),
    number(fill_size, 0, 30, 2, kEvery, 2),
    address(destination, 1, 4),
    data(pattern, 3, 32),
    count(bytes, 4, 0, 22, kGfx9, 4),
    count(bytes, 4, 0, 30, kOss7, 4)};
inline constexpr Field kFenceHeader[] = {
    option(mtype, 0, 16, 2, kOss7), option(sys, 0, 20, 1, kOss7), option(snp, 0, 22, 1, kOss7),
    option(gpa, 0, 23, 1, kOss7),   scope_at(scope, 0, 24),       option(hint, 0, 26, 3, kOss7)};
inline constexpr Field kFenceBody[] = {address(word, 0, 4), data(value, 2, 32)};
inline constexpr Field kFence64Body[] = {address(word, 0, 8), data(value, 2, 64)};
inline constexpr Field kTrap[] = {number(context, 1, 0, 28)};
inline constexpr Field kPoll[] = {
    option(hdp_flush, 0, 26, 1, kHardware),
    {function, Meaning::function, 0, 28, 3, kEvery, 1, kPollAtLeast},
    number(memory, 0, 31, 1, kEvery, 1),
    address(word, 1, 4),
    data(reference, 3, 32),
    data(mask, 4, 32, 0xffffffffu),
    number(interval, 5, 0, 16, kEvery, 4),
    number(retries, 5, 16, 12, kEvery, 0xfff),
    scope_at(scope, 5, 28)};
inline constexpr Field kPoll64[] = {
    option(mtype, 0, 16, 2, kOss7),
    option(sys, 0, 20, 1, kOss7),
    option(snp, 0, 22, 1, kOss7),
    option(gpa, 0, 23, 1, kOss7),
    option(policy, 0, 24, 3, kOss7),
    {function, Meaning::function, 0, 28, 3, kEvery, 1, kPollAtLeast},
    address(word, 1, 8),
    data(reference, 3, 64),
    data(mask, 5, 64, ~std::uint64_t{0}),
    number(retries, 7, 16, 8, kEvery, 0xff),
    scope_at(scope, 7, 28, kEvery)};
inline constexpr Field kAtomic[] = {
    option(loop, 0, 16, 1, kHardware),
    option(tmz, 0, 18, 1, kHardware),
    scope_at(scope, 0, 20),
    option(hint, 0, 22, 3, kOss7),
    {operation, Meaning::operation, 0, 25, 7, kEvery, 1, 0},
    address(word, 1, 4),
    data(value, 3, 64),
    data(compare, 5, 64),
    option(interval, 7, 0, 13, kHardware)};
inline constexpr Field kTimestamp[] = {scope_at(scope, 0, 24), address(destination, 1, 32)};

} // namespace fields

} // namespace ferry::device
