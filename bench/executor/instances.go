package executor

import "slices"

// instances are the leases of the instances of a model, of the streams of its devices, and
// of the workers that run on these.
type instances struct {
	devices []int   // of each instance
	place   []int   // of its device in running
	busy    []bool  // by instance; one that has lost its worker stays so
	running []int   // streams in use by device
	streams int     // of each device; 0 is no limit
	each    int     // streams that a batch takes
	holds   [][]int // by instance: the places of the streams that its batch takes

	// free are the workers by place; nil where streams have no limit and a batch takes
	// several, as only a simulation has it.
	free     [][]int
	lost     []bool  // by worker: out of service
	lent     [][]int // by instance: the workers of its batch
	idle     int     // workers in free
	capacity int     // workers in service
}

// distinct gives the numbers of devices, ascending, each once.
func distinct(devices []int) []int {
	return slices.Compact(slices.Sorted(slices.Values(devices)))
}

func newInstances(s *Setup) instances {
	numbers := distinct(s.Devices)
	in := instances{devices: s.Devices, streams: s.Streams, each: max(1, s.StreamsPerBatch),
		busy: make([]bool, len(s.Devices)), holds: make([][]int, len(s.Devices)), lent: make([][]int, len(s.Devices)),
		running: make([]int, len(numbers))}
	for _, device := range s.Devices {
		at, _ := slices.BinarySearch(numbers, device)
		in.place = append(in.place, at)
	}
	if in.streams == 0 && in.each > 1 {
		return in
	}
	in.free = make([][]int, len(numbers))
	for worker, device := range s.Workers() {
		at, _ := slices.BinarySearch(numbers, device)
		in.free[at] = append(in.free[at], worker)
		in.lost = append(in.lost, false)
	}
	in.idle, in.capacity = len(in.lost), len(in.lost)
	return in
}

// lease takes an idle instance on the device that uses the fewest streams, of equals the
// first; and where a batch takes several streams the others, each on the device that then
// uses the fewest. It takes nothing when streams are lacking.
func (in *instances) lease() (instance int, ok bool) {
	if in.free != nil && in.idle < in.each {
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
	return in.free == nil || len(in.free[place]) > 0
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

// hold has the batch of an instance take a stream, and the worker that was used last.
func (in *instances) hold(instance, place int) {
	in.holds[instance] = append(in.holds[instance], place)
	in.running[place]++
	if in.free == nil {
		return
	}
	last := len(in.free[place]) - 1
	in.lent[instance] = append(in.lent[instance], in.free[place][last])
	in.free[place] = in.free[place][:last]
	in.idle--
}

// release ends a lease. It says whether the instance can be leased again: where each has
// a worker of its own, not without it.
func (in *instances) release(instance int) (ok bool) {
	ok = true
	for i, worker := range in.lent[instance] {
		if in.lost[worker] {
			ok = in.streams > 0
			continue
		}
		place := in.holds[instance][i]
		in.free[place] = append(in.free[place], worker)
		in.idle++
	}
	for _, place := range in.holds[instance] {
		in.running[place]--
	}
	in.busy[instance] = !ok
	in.holds[instance], in.lent[instance] = in.holds[instance][:0], in.lent[instance][:0]
	return ok
}

// retire takes a worker out of service, which has a lease. It says whether enough are left
// for a batch.
func (in *instances) retire(worker int) (isAny bool) {
	if !in.lost[worker] {
		in.lost[worker] = true
		in.capacity--
	}
	return in.capacity >= in.each
}
