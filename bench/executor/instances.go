package executor

import "slices"

// instances are the leases of the instances of a model.
type instances struct {
	devices []int  // of each instance
	place   []int  // of its device in running
	busy    []bool // by instance
	running []int  // leases by device
}

func newInstances(devices []int) instances {
	numbers := slices.Compact(slices.Sorted(slices.Values(devices)))
	in := instances{devices: devices, busy: make([]bool, len(devices)), running: make([]int, len(numbers))}
	for _, device := range devices {
		at, _ := slices.BinarySearch(numbers, device)
		in.place = append(in.place, at)
	}
	return in
}

// lease takes an idle instance on the device that runs the fewest batches; of equals the
// first. There must be one.
func (in *instances) lease() int {
	best := -1
	for i, busy := range in.busy {
		if !busy && (best < 0 || in.running[in.place[i]] < in.running[in.place[best]]) {
			best = i
		}
	}
	in.busy[best] = true
	in.running[in.place[best]]++
	return best
}

func (in *instances) release(i int) {
	in.busy[i] = false
	in.running[in.place[i]]--
}
