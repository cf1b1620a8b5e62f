package eval

import (
	"math"
	"strings"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// recurrentActivation is an activation function that a recurrent operator can name,
// with the parameters it takes and their defaults.
type recurrentActivation struct {
	name                string
	takesAlpha, hasBeta bool
	alpha, beta         float64
	apply               func(x, alpha, beta float64) float64
}

// recurrentActivations lists them; letter case does not matter in models.
var recurrentActivations = []recurrentActivation{
	{name: "Tanh", apply: func(x, _, _ float64) float64 { return elementary.Tanh(x) }},
	{name: "Sigmoid", apply: func(x, _, _ float64) float64 { return elementary.Sigmoid(x) }},
	{name: "Relu", apply: func(x, _, _ float64) float64 { return max(x, 0) }},
	{name: "Softsign", apply: func(x, _, _ float64) float64 { return x / (1 + math.Abs(x)) }},
	{name: "Softplus", apply: func(x, _, _ float64) float64 {
		return max(x, 0) + elementary.Log1p(elementary.Exp(-math.Abs(x)))
	}},
	{name: "Affine", takesAlpha: true, hasBeta: true, alpha: 1, apply: func(x, a, b float64) float64 { return float64(a*x) + b }},
	{name: "LeakyRelu", takesAlpha: true, alpha: 0.01, apply: func(x, a, _ float64) float64 {
		if x < 0 {
			return a * x
		}
		return x
	}},
	{name: "ThresholdedRelu", takesAlpha: true, alpha: 1, apply: func(x, a, _ float64) float64 {
		if x > a {
			return x
		}
		return 0
	}},
	{name: "ScaledTanh", takesAlpha: true, hasBeta: true, alpha: 1, beta: 1, apply: func(x, a, b float64) float64 {
		return a * elementary.Tanh(b*x)
	}},
	{name: "HardSigmoid", takesAlpha: true, hasBeta: true, alpha: 0.2, beta: 0.5, apply: func(x, a, b float64) float64 {
		return min(max(float64(a*x)+b, 0), 1)
	}},
	{name: "Elu", takesAlpha: true, alpha: 1, apply: func(x, a, _ float64) float64 {
		if x < 0 {
			return a * elementary.Expm1(x)
		}
		return x
	}},
}

// activationsOf gives the activation functions of one direction. Parameters are
// lists that the functions which take one use up in order, first those of the first
// direction.
func (r *recurrence[T]) activationsOf(pass int) ([]func([]T), error) {
	each := len(r.kind.activations)
	var names []string
	if a := r.c.Attribute("activations"); a != nil {
		names = a.Strings()
	}
	if len(names) == 0 {
		for range r.passes {
			names = append(names, r.kind.activations...)
		}
	}
	if len(names) != each*r.passes {
		return nil, r.c.Errorf("%d activations for %d directions", len(names), r.passes)
	}
	var alphas, betas []float32
	if a := r.c.Attribute("activation_alpha"); a != nil {
		alphas = a.Floats()
	}
	if a := r.c.Attribute("activation_beta"); a != nil {
		betas = a.Floats()
	}
	var out []func([]T)
	for i, name := range names {
		a, ok := findActivation(name)
		if !ok {
			return nil, r.c.Errorf("activation %q is not known", name)
		}
		if a.takesAlpha && len(alphas) > 0 {
			a.alpha, alphas = float64(alphas[0]), alphas[1:]
		}
		if a.hasBeta && len(betas) > 0 {
			a.beta, betas = float64(betas[0]), betas[1:]
		}
		if i/each == pass {
			out = append(out, rowFunction[T](a))
		}
	}
	return out, nil
}

func findActivation(name string) (recurrentActivation, bool) {
	for _, a := range recurrentActivations {
		if strings.EqualFold(a.name, name) {
			return a, true
		}
	}
	return recurrentActivation{}, false
}

// rowFunction applies an activation to a row in place. The two that nearly all models
// use are called without the detour, and in float32 in their faster form.
func rowFunction[T floating](a recurrentActivation) func([]T) {
	narrow := tensor.TypeOf[T]() == tensor.Float32
	switch {
	case a.name == "Tanh" && narrow:
		return func(row []T) {
			for i, v := range row {
				row[i] = T(elementary.FastTanh(float64(v)))
			}
		}
	case a.name == "Sigmoid" && narrow:
		return func(row []T) {
			for i, v := range row {
				row[i] = T(elementary.FastSigmoid(float64(v)))
			}
		}
	}
	return func(row []T) {
		for i, v := range row {
			row[i] = T(a.apply(float64(v), a.alpha, a.beta))
		}
	}
}
