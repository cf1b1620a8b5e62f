package executor

import "slices"

// instances are the leases of the instances of a model and of the streams of its devices.
type instances struct {
	devices []int   // of each instance
	place   []int   // of its device in running
	busy    []bool  // by instance
	running []int   // streams in use by device
	streams int     // of each device; 0 is no limit
	each    int     // streams that a batch takes
	taken   int     // streams in use on all devices
	holds   [][]int // by instance: the places of the streams that its batch takes
}

// distinct gives the numbers of devices, ascending, each once.
func distinct(devices []int) []int {
	return slices.Compact(slices.Sorted(slices.Values(devices)))
}

func newInstances(s *Setup) instances {
	numbers := distinct(s.Devices)
	in := instances{devices: s.Devices, streams: s.Streams, each: max(1, s.StreamsPerBatch),
		busy: make([]bool, len(s.Devices)), holds: make([][]int, len(s.Devices)), running: make([]int, len(numbers))}
	for _, device := range s.Devices {
		at, _ := slices.BinarySearch(numbers, device)
		in.place = append(in.place, at)
	}
	return in
}

// lease takes an idle instance on the device that uses the fewest streams, of equals the
// first; and where a batch takes several streams the others, each on the device that then
// uses the fewest. It takes nothing when streams are lacking.
func (in *instances) lease() (instance int, ok bool) {
	if in.streams > 0 && in.taken+in.each > in.streams*len(in.running) {
		return 0, false
	}
	best := -1
	for i, busy := range in.busy {
		if !busy && in.isFree(in.place[i]) && (best < 0 || in.running[in.place[i]] < in.running[in.place[best]]) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	in.busy[best] = true
	in.hold(best, in.place[best])
	for range in.each - 1 {
		in.hold(best, in.leastLoaded())
	}
	return best, true
}

func (in *instances) isFree(place int) bool {
	return in.streams == 0 || in.running[place] < in.streams
}

// leastLoaded is the device with a free stream that uses the fewest. There must be one.
func (in *instances) leastLoaded() int {
	best := -1
	for place := range in.running {
		if in.isFree(place) && (best < 0 || in.running[place] < in.running[best]) {
			best = place
		}
	}
	return best
}

// hold has the batch of an instance take a stream.
func (in *instances) hold(instance, place int) {
	in.holds[instance] = append(in.holds[instance], place)
	in.running[place]++
	in.taken++
}

// release ends a lease.
func (in *instances) release(instance int) {
	in.busy[instance] = false
	for _, place := range in.holds[instance] {
		in.running[place]--
		in.taken--
	}
	in.holds[instance] = in.holds[instance][:0]
}
