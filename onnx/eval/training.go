package eval

import (
	"math"
	"slices"
)

// trainingDomain holds the operators that change weights.
const trainingDomain = "ai.onnx.preview.training"

// trainingOperators take one step down a gradient. Gradient itself, which needs the
// derivative of other operators, is not among them.
var trainingOperators = []operator{
	{domain: trainingDomain, name: "Adagrad", since: 1, run: onFloats(2, optimizer(2, adagrad[float32]), optimizer(2, adagrad[float64]))},
	{domain: trainingDomain, name: "Adam", since: 1, run: onFloats(2, optimizer(3, adam[float32]), optimizer(3, adam[float64]))},
	{domain: trainingDomain, name: "Momentum", since: 1, run: onFloats(2, optimizer(2, momentum[float32]), optimizer(2, momentum[float64]))},
}

// update computes one element: state starts as the weight and what the algorithm
// remembers of the past, and ends as the new ones.
type update[T floating] func(gradient T, state []T)

// optimizer makes a kernel whose inputs are a learning rate, a count of steps, and
// then groups of as many tensors as are optimised: weights, gradients, and states-1
// groups of what the algorithm remembers. The outputs are the new weights and the
// new memories.
func optimizer[T floating](states int, prepare func(c *Call, rate T, step int64) (update[T], error)) Kernel {
	return func(c *Call) error {
		rate, err := c.number(0)
		if err != nil {
			return err
		}
		step, err := c.count(1)
		if err != nil {
			return err
		}
		f, err := prepare(c, T(rate), int64(step))
		if err != nil {
			return err
		}
		tensors := len(c.Inputs) - 2
		if tensors%(states+1) != 0 || tensors/(states+1)*states != len(c.Outputs) {
			return c.Errorf("%d tensors for %d outputs", tensors, len(c.Outputs))
		}
		count := tensors / (states + 1)
		for k := range count {
			if err := optimize(c, k, count, states, f); err != nil {
				return err
			}
		}
		return nil
	}
}

// optimize updates tensor k of count.
func optimize[T floating](c *Call, k, count, states int, f update[T]) error {
	weights, err := numberInput[T](c, 2+k)
	if err != nil {
		return err
	}
	gradients, err := shapedInput[T](c, 2+count+k, weights.shape...)
	if err != nil {
		return err
	}
	in, out := [][]T{weights.data}, make([][]T, states)
	for s := range states {
		if s > 0 {
			memory, err := shapedInput[T](c, 2+(s+1)*count+k, weights.shape...)
			if err != nil {
				return err
			}
			in = append(in, memory)
		}
		y, err := newResult[T](c, s*count+k, weights.typ, weights.shape...)
		if err != nil {
			return err
		}
		out[s] = y.data
	}
	c.Parallel(len(gradients), functionGrain, func(first, last int) {
		state := make([]T, states)
		for i := first; i < last; i++ {
			for s := range state {
				state[s] = in[s][i]
			}
			f(gradients[i], state)
			for s, v := range state {
				out[s][i] = v
			}
		}
	})
	return nil
}

func adagrad[T floating](c *Call, rate T, step int64) (update[T], error) {
	decay, norm, epsilon := T(c.Float("decay_factor", 0)), T(c.Float("norm_coefficient", 0)), T(c.Float("epsilon", 1e-6))
	rate /= 1 + T(T(step)*decay)
	return func(gradient T, state []T) {
		g := T(norm*state[0]) + gradient
		state[1] += T(g * g)
		state[0] -= T(rate*g) / (squareRoot(state[1]) + epsilon)
	}, nil
}

func adam[T floating](c *Call, rate T, step int64) (update[T], error) {
	alpha, beta := T(c.Float("alpha", 0.9)), T(c.Float("beta", 0.999))
	norm, after, epsilon := T(c.Float("norm_coefficient", 0)), T(c.Float("norm_coefficient_post", 0)), T(c.Float("epsilon", 1e-6))
	if step > 0 {
		rate *= squareRoot(1-powerOf(beta, step)) / (1 - powerOf(alpha, step))
	}
	return func(gradient T, state []T) {
		g := T(norm*state[0]) + gradient
		state[1] = T(alpha*state[1]) + T((1-alpha)*g)
		state[2] = T(beta*state[2]) + T((1-beta)*g*g)
		moved := state[0] - T(rate*state[1])/(squareRoot(state[2])+epsilon)
		state[0] = (1 - after) * moved
	}, nil
}

func momentum[T floating](c *Call, rate T, step int64) (update[T], error) {
	alpha, beta, norm := T(c.Float("alpha", 0)), T(c.Float("beta", 0)), T(c.Float("norm_coefficient", 0))
	if step == 0 {
		beta = 1
	}
	mode := c.String("mode", "")
	if !slices.Contains([]string{"standard", "nesterov"}, mode) {
		return nil, c.Errorf("attribute \"mode\" is %q", mode)
	}
	return func(gradient T, state []T) {
		g := T(norm*state[0]) + gradient
		state[1] = T(alpha*state[1]) + T(beta*g)
		direction := state[1]
		if mode == "nesterov" {
			direction = g + T(alpha*state[1])
		}
		state[0] -= T(rate * direction)
	}, nil
}

func squareRoot[T floating](x T) T { return T(math.Sqrt(float64(x))) }

func powerOf[T floating](x T, n int64) T { return T(power64(float64(x), float64(n))) }
