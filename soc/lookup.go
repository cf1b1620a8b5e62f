package soc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/suggest"
)

// Chips lists all chips, family by family.
func Chips() []Chip { return slices.Clone(chips) }

// Families lists all families.
func Families() []Family { return slices.Clone(families) }

// FamilyOf gives what the chips of a family share; the zero Family for a name that
// is none.
func FamilyOf(name FamilyName) Family {
	i := slices.IndexFunc(families, func(f Family) bool { return f.Name == name })
	if i < 0 {
		return Family{}
	}
	return families[i]
}

// Shared gives what the chip shares with its family: memory kind, limits, grammar of
// --aicore_num, precision modes.
func (c Chip) Shared() Family { return FamilyOf(c.Family) }

// MaxCores gives the highest numbers that --aicore_num takes: cube and vector cores
// where the grammar is C|V, else the AI Cores and 0. 0 means that it is not known.
func (c Chip) MaxCores() (first, second int) {
	if c.Shared().CoreNumber == CubeAndVector {
		return c.CubeCores, c.VectorCores
	}
	return c.AICores, 0
}

// precisionNeeds are the modes of --precision_mode and --precision_mode_v2 that not
// every family has.
var precisionNeeds = map[string]func(Family) bool{
	"allow_mix_precision_bf16": func(f Family) bool { return f.BFloat16 },
	"allow_fp32_to_bf16":       func(f Family) bool { return f.BFloat16 },
	"mixed_bfloat16":           func(f Family) bool { return f.BFloat16 },
	"cube_hif8":                func(f Family) bool { return f.HiFloat8 },
	"mixed_hif8":               func(f Family) bool { return f.HiFloat8 },
}

// AllowsPrecision tells whether the compiler's guide allows a precision mode on the
// family. Modes that are none are the caller's business.
func (f Family) AllowsPrecision(mode string) bool {
	need, special := precisionNeeds[mode]
	return !special || need(f)
}

// NameError is a name that is no chip, or that fits several.
type NameError struct {
	Name string
	// Family is set when the name is that of a family or of a product with several
	// chips; Candidates are then its chips.
	Family     FamilyName
	Candidates []string
	// Nearest is the chip that was probably meant; empty when none is close.
	Nearest string
}

func (e *NameError) Error() string {
	switch {
	case e.Family != "":
		return fmt.Sprintf("%q is a family of chips, and a model is compiled for one: %s; `npu-smi info` shows the name of yours",
			e.Name, strings.Join(e.Candidates, ", "))
	case e.Nearest != "":
		return fmt.Sprintf("%q is no Ascend chip; did you mean %q?", e.Name, e.Nearest)
	}
	return fmt.Sprintf("%q is no Ascend chip; `npu-smi info` shows the name of yours, such as 310P3 or 910B3", e.Name)
}

// Lookup finds a chip by its name or by what people write for it: without "Ascend",
// in any case, with blanks, or the name of a product. The error is a *NameError.
func Lookup(name string) (Chip, error) {
	if i := indexOf(name); i >= 0 {
		return chips[i], nil
	}
	k := key(name)
	if family := familyByKey(k); family != "" {
		return Chip{}, &NameError{Name: name, Family: family, Candidates: members(family)}
	}
	if i := slices.IndexFunc(chips, func(c Chip) bool { return key(c.Name) == k }); i >= 0 {
		return chips[i], nil
	}
	for _, p := range products {
		if key(p.name) == k && p.chip != "" {
			return chips[indexOf(p.chip)], nil
		}
	}
	return Chip{}, &NameError{Name: name, Nearest: nearest(k)}
}

// LookupFamily finds a family by a chip of it, by its own name or by a product.
func LookupFamily(name string) (Family, error) {
	if family := familyByKey(key(name)); family != "" && indexOf(name) < 0 {
		return FamilyOf(family), nil
	}
	c, err := Lookup(name)
	if err != nil {
		return Family{}, err
	}
	return c.Shared(), nil
}

func indexOf(name string) int {
	return slices.IndexFunc(chips, func(c Chip) bool { return c.Name == name })
}

// key is a name without what people write differently.
func key(name string) string {
	k := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t_-", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	return strings.TrimPrefix(strings.TrimPrefix(k, "huawei"), "ascend")
}

// familyByKey finds a family of several chips. "910b" means the family, although the
// first generation has a chip that is called just so: who wants that one writes its
// name in full.
func familyByKey(k string) FamilyName {
	for _, f := range families {
		if key(string(f.Name)) == k && len(members(f.Name)) > 1 && indexOf(string(f.Name)) < 0 {
			return f.Name
		}
	}
	if k == "910b" {
		return Family910B
	}
	for _, p := range products {
		if p.family != "" && key(p.name) == k {
			return p.family
		}
	}
	return ""
}

// members lists the chips of a family.
func members(family FamilyName) []string {
	var names []string
	for _, c := range chips {
		if c.Family == family {
			names = append(names, c.Name)
		}
	}
	return names
}

// nearest finds the chip or product that was probably meant: first among names
// without "Ascend", then with it, in case that word is misspelt. Names that need a
// caution are not offered.
func nearest(k string) string {
	var names, short, full []string
	for _, c := range chips {
		if c.Caution == "" {
			names, short, full = append(names, c.Name), append(short, key(c.Name)), append(full, "ascend"+key(c.Name))
		}
	}
	for _, p := range products {
		names, short, full = append(names, p.name), append(short, key(p.name)), append(full, key(p.name))
	}
	for _, known := range [][]string{short, full} {
		if n := suggest.Nearest(k, known); n != "" {
			return names[slices.Index(known, n)]
		}
	}
	return ""
}
