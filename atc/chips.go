package atc

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/soc"
)

// lookupChip gives a chip by the name ATC takes, letter by letter: from the file
// that the toolkit here has of it, else from the table of package soc. What people
// write otherwise leads to that name in the error.
func (e Environment) lookupChip(name string) (soc.Chip, error) {
	chip, err := soc.Lookup(name)
	if err == nil && chip.Name != name {
		err = fmt.Errorf("did you mean %s?", chip.Name)
	}
	switch installed, ok := e.installedChip(name); {
	case ok && err == nil:
		chip.AICores, chip.VectorCores = installed.AICores, installed.VectorCores
	case ok:
		return installed, nil
	}
	return chip, err
}

// chipName is how CANN names chips, and what may stand in a file's name.
var chipName = regexp.MustCompile(`^Ascend[A-Za-z0-9_-]+$`)

// IsChipName says whether a text has the form of a name that --soc_version takes.
func IsChipName(text string) bool { return chipName.MatchString(text) }

// installedChip reads the numbers of cores from a toolkit's file of the chip. Newer
// toolkits know chips that npuctl does not.
func (e Environment) installedChip(name string) (soc.Chip, bool) {
	home := e.Toolkit.Root
	if home == "" {
		home, _ = e.Lookup("ASCEND_HOME_PATH") // "" when it is not set
	}
	if home == "" || !IsChipName(name) {
		return soc.Chip{}, false
	}
	data, err := readSmall(filepath.Join(home, e.HostCPU+"-linux", "data", "platform_config", name+".ini"))
	if err != nil {
		return soc.Chip{}, false
	}
	chip := soc.Chip{Name: name}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, "=")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		switch key = strings.TrimSpace(key); {
		case err != nil:
		case key == "ai_core_cnt":
			chip.AICores = n
		case key == "vector_core_cnt":
			chip.VectorCores = n
		}
	}
	return chip, true
}

// chip gives the chip that is compiled for, and its family, which is empty for one
// that only the toolkit knows; false when nobody knows the name.
func (c *checker) chip() (soc.Chip, soc.Family, bool) {
	chip, err := c.env.Chip(c.value("soc_version"))
	return chip, soc.FamilyOf(chip.Family), err == nil
}

func socKnown(c *checker) *Diagnosis {
	name := c.value("soc_version")
	_, err := c.env.Chip(name)
	if err == nil || c.env.decidesItself() {
		return nil
	}
	d := wrongValue("E19999", "soc_version", name, "no chip has that name").with("%v", err)
	return &d
}

func coreNumbers(c *checker) *Diagnosis {
	whole := c.value("aicore_num")
	chip, _, known := c.chip()
	if whole == "" || !known || chip.AICores == 0 {
		return nil
	}
	cores, vectors := splitCores(whole)
	if d := checkCores(whole, cores, "AI cores", chip.AICores); d != nil {
		return d
	}
	return checkCores(whole, vectors, "vector cores", chip.VectorCores)
}

// chipUnknown notes a chip of which npuctl's table says nothing, where CANN decides.
func chipUnknown(c *checker) []Diagnosis {
	name := c.value("soc_version")
	_, family, known := c.chip()
	if !c.env.decidesItself() || known && family.Name != "" {
		return nil
	}
	d := note("soc_version", "--soc_version=%s: npuctl's table of chips does not have it, %s does: gears, precision and operators are not held against the chip", name, c.env.Toolkit.name())
	if !known {
		_, err := c.env.Chip(name)
		d = note("soc_version", "--soc_version=%s: neither npuctl's table of chips nor %s has it; atc will decide", name, c.env.Toolkit.name()).with("%v", err)
	}
	return []Diagnosis{d}
}
