// SPDX-License-Identifier: Apache-2.0
//
// Where the time of the host goes in operators (Op.cpp), in ns, of all threads and devices.
#pragma once

#include <cstdint>

namespace neuron {

struct HostTimes {
  uint64_t compile;  // making and loading programs; always counted
  uint64_t launch;   // handing launches to the runtime, only while timeLaunches(true)
};
HostTimes hostTimes();
void timeLaunches(bool on);

}  // namespace neuron
