package executor

import (
	"fmt"
	"testing"
	"time"
)

// Policies that contradict themselves are refused with what is wrong.
func TestPolicyCheck(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		want   string
	}{
		{Policy{}, "<nil>"},
		{Policy{MaxBatch: 8, Dynamic: true, Preferred: []int{8, 2, 2}}, "<nil>"},
		{Policy{MaxBatch: -1}, "max_batch_size -1 is below 0"},
		{Policy{MaxBatch: 4, Preferred: []int{5}}, "the preferred batch size 5 is not in 1 … 4"},
		{Policy{Preferred: []int{1}}, "the preferred batch size 1 is not in 1 … 0"},
		{Policy{Delay: -1}, "the queue delay -1ns is below 0"},
		{Policy{Levels: -1}, "-1 priority levels are below 0"},
		{Policy{Levels: 3}, "the default priority level 0 is not in 1 … 3"},
		{Policy{Levels: 3, DefaultLevel: 4}, "the default priority level 4 is not in 1 … 3"},
		{Policy{Levels: 2, DefaultLevel: 1, PreserveOrdering: true}, "preserve_ordering and 2 priority levels exclude each other"},
		{Policy{Levels: 1, DefaultLevel: 1, PreserveOrdering: true}, "<nil>"},
		{Policy{PreserveOrdering: true, Queue: QueuePolicy{DelayExpired: true, Timeout: 1}}, "the default queue policy: preserve_ordering and delaying what waited too long exclude each other"},
		{Policy{Queue: QueuePolicy{MaxSize: -1}}, "the default queue policy: the queue size -1 is below 0"},
		{Policy{Levels: 2, DefaultLevel: 1, LevelQueue: map[int]QueuePolicy{3: {}}}, "the queue policy of level 3: levels are 1 … 2"},
		{Policy{Levels: 2, DefaultLevel: 1, LevelQueue: map[int]QueuePolicy{2: {Timeout: -time.Second}}}, "the queue policy of level 2: the timeout -1s is below 0"},
	} {
		if got := fmt.Sprint(test.policy.Check()); got != test.want {
			t.Errorf("%+v: %s, want %s", test.policy, got, test.want)
		}
	}
	if _, err := NewScheduler(Setup{}, nil); fmt.Sprint(err) != "no instances" {
		t.Errorf("without instances: %v", err)
	}
}

// A batch takes the smallest gear that holds it, and above the largest several.
func TestGearPlan(t *testing.T) {
	s := NewSignature([]Input{{Name: "ids", Dims: []int64{-1}}, {Name: "mask", Dims: []int64{-1}}, {Name: "bias", Dims: []int64{2}, Optional: true}}, 16)
	inputs := []GearInput{{0, []int64{-1, -1}}, {1, []int64{-1, -1}}, {2, []int64{-1, 2}}}
	row := func(batch, length int64) []int64 { return []int64{batch, length, batch, length, batch} }
	g, err := NewGears(s, inputs, [][]int64{row(4, 64), row(1, 16), row(8, 16), row(4, 16)})
	if err != nil {
		t.Fatal(err)
	}
	class := func(length int64, withBias bool) Class {
		given := []Given{{0, []int64{length}}, {1, []int64{length}}}
		if withBias {
			given = append(given, Given{2, []int64{2}})
		}
		c, err := s.Admit(1, given)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, test := range []struct {
		length int64
		bias   bool
		items  int
		want   string
	}{
		{16, false, 1, "[{1 1 1 32 0 0}]"},
		{9, false, 1, "[{1 1 1 32 14 0}]"},
		{9, true, 1, "[{1 1 1 34 14 0}]"},    // what is not there is not padding
		{16, false, 3, "[{3 3 4 128 32 0}]"}, // four of 16 are fewer elements than four of 64
		{17, false, 1, "[{0 1 4 512 478 0}]"},
		{16, false, 8, "[{2 8 8 256 0 0}]"},
		{16, false, 13, "[{2 8 8 256 0 0} {2 5 8 256 96 0}]"},
		{64, false, 6, "[{0 4 4 512 0 0} {0 2 4 512 256 0}]"},
	} {
		if got := fmt.Sprint(g.Plan(nil, class(test.length, test.bias), test.items)); got != test.want {
			t.Errorf("%d items of %d: %s, want %s", test.items, test.length, got, test.want)
		}
	}
	if g.Fits(class(65, false)) {
		t.Error("65 fits")
	}
	var none *Gears
	if got := fmt.Sprint(none.Plan(nil, 0, 5)); got != "[{-1 5 5 0 0 0}]" || !none.Fits(9) {
		t.Errorf("without gears %s", got)
	}
}

func TestGearErrors(t *testing.T) {
	s := NewSignature([]Input{{Name: "x", Dims: []int64{3}}}, 4)
	for _, test := range []struct {
		dims []int64
		rows [][]int64
		want string
	}{
		{[]int64{-1}, [][]int64{{1}}, `the gears of input "x" have 1 dims, the input 2`},
		{[]int64{-1, 3}, nil, "no gears"},
		{[]int64{-1, 3}, [][]int64{{1, 3}}, "gear 1,3: it has 2 numbers, and the inputs leave 1 dims open"},
	} {
		if _, err := NewGears(s, []GearInput{{0, test.dims}}, test.rows); fmt.Sprint(err) != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	if _, err := BatchGears(NewSignature(nil, 0), 1); fmt.Sprint(err) != "gears for the batch need a max_batch_size above 0" {
		t.Errorf("%v", err)
	}
	if _, err := BatchGears(s); fmt.Sprint(err) != "no gears" {
		t.Errorf("%v", err)
	}
}
