package elementary

import "math"

// erfSeries gives erf(x)/x in powers of x² for |x| up to ½.
var erfSeries = [...]float64{
	1.1283791670955126, -0.37612638903183476, 0.11283791670925353, -0.026866170632887928, 0.00522397737302147,
	-0.0008548297753674966, 0.00012053335124353741, -1.4845849259707869e-05, 1.4725865480556744e-06,
}

// erfcSeries gives exp(t²)·erfc(t)·(1+2t) in powers of (t-3.75)/(t+3.75) for t from ½ on.
var erfcSeries = [...]float64{
	1.2375126308378275, -0.1402405985855468, 0.0035854154854637445, 0.08227673849012167, -0.10880393014173435,
	0.09230432116130569, -0.05869339858928527, 0.028362277402325206, -0.009746579571602998, 0.0017556260156478727,
	0.0002937138356238064, -0.00029015503427679506, 5.1647976582843e-05, 2.2387738277840555e-05,
	-1.143974357174816e-05, -9.816860426264648e-07, 1.7409856628927416e-06, -4.55445275535111e-08,
	-2.42958733159656e-07, 1.363659934000002e-08, 2.5497974162237732e-08,
}

// erfcTail is erfc(t) for t from ½ on.
func erfcTail(t float64) float64 {
	if t > 27.3 {
		return 0
	}
	// t² is needed to more bits than it has: the head's square is exact.
	head := float64(float32(t))
	e := Exp(-float64(head*head)) * Exp(-float64((t-head)*(t+head)))
	return float64(e * (polynomial((t-3.75)/(t+3.75), erfcSeries[:]) / (1 + 2*t)))
}

// Erf is the error function.
func Erf(x float64) float64 {
	a := math.Abs(x)
	if a > 0.5 {
		return math.Copysign(1-erfcTail(a), x)
	}
	return float64(x * polynomial(float64(x*x), erfSeries[:]))
}

// Erfc is 1 - Erf(x), accurate for large x as well.
func Erfc(x float64) float64 {
	switch {
	case x > 0.5:
		return erfcTail(x)
	case x < -0.5:
		return 2 - erfcTail(-x)
	}
	return 1 - Erf(x)
}

// fastErfSmall is erf(x) for |x| up to ½ to 36 bits.
func fastErfSmall(x float64) float64 {
	z := float64(x * x)
	return float64(x * (1.1283791670824095 + float64(z*(-0.37612638525650693+float64(z*(0.11283774013179539+
		float64(z*(-0.026863143032249386+float64(z*(0.005200413724335493+float64(z*-0.0007694534279142308)))))))))))
}

// fastErfcTail is erfc(t) for t from ½ on to 29 bits; 0 beyond 10.6, where it is
// below the least float32.
func fastErfcTail(t float64) float64 {
	if t > 10.6 {
		return 0
	}
	// In two halves that do not wait for each other.
	v := (t - 3.75) / (t + 3.75)
	w := float64(v * v)
	even := 1.2375126300145607 + float64(w*(0.003585556894441762+float64(w*(-0.10880832638773964+
		float64(w*(-0.05864126600184453+float64(w*(-0.010011746069045426+float64(w*0.000786188111190319)))))))))
	odd := -0.14024057538776527 + float64(w*(0.08227552155038413+float64(w*(0.09232065867242453+
		float64(w*(0.02829102759865927+float64(w*0.0017835498445055325)))))))
	return float64(FastExp(-float64(t*t)) * ((even + float64(v*odd)) / (1 + 2*t)))
}

// FastErf is the error function to about 29 bits.
func FastErf(x float64) float64 {
	a := math.Abs(x)
	if a > 0.5 {
		return math.Copysign(1-fastErfcTail(a), x)
	}
	return fastErfSmall(x)
}

// FastErfc is 1 - Erf(x) to about 29 bits, for large x as well.
func FastErfc(x float64) float64 {
	switch {
	case x > 0.5:
		return fastErfcTail(x)
	case x < -0.5:
		return 2 - fastErfcTail(-x)
	}
	return 1 - fastErfSmall(x)
}
