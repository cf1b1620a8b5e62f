package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/internal/project"
)

// notServed are flags of npuctl config that say what to do, not how the model is served;
// sizes, gears, precision and the chip have sections of their own.
var notServed = []string{
	"static", "gears", "dynamic", "batch", "dim", "input-shape", "no-optimize", "precision", "aicore-num", "soc",
	"om", "link", "replace-model", "diff", "force", "help",
}

// Each flag of npuctl config has a setting in the section serve, and each setting a flag.
func TestServeSettings(t *testing.T) {
	flags := newConfigCommand(&app{}).Flags()
	var settings, served []string
	for _, s := range serveSettings(&project.Project{}) {
		if flags.Lookup(s.flag) == nil {
			t.Errorf("%s stands in for --%s, which there is not", s.setting, s.flag)
		}
		settings, served = append(settings, s.setting), append(served, s.flag)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(served, f.Name) && !slices.Contains(notServed, f.Name) {
			t.Errorf("--%s has no setting in the section serve", f.Name)
		}
	})
	for f := range reflect.TypeFor[project.Serve]().Fields() {
		if name := f.Tag.Get("yaml"); !slices.Contains(settings, name) {
			t.Errorf("nothing reads serve.%s", name)
		}
	}
}
