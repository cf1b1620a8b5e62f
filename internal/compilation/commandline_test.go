package compilation

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
)

// commandLine is a script's command line for the workshop's model.
func (w workshop) commandLine(more ...string) CommandLine {
	args := append([]string{
		"--model=" + w.model, "--framework=5", "--output=" + filepath.Join(w.folder, "net"), "--soc_version=Ascend910B3",
	}, more...)
	return CommandLine{Args: args, CANN: w.job.CANN, Cache: w.job.Cache, Version: "test"}
}

func TestCommandLine(t *testing.T) {
	w := newWorkshop(t, imageModel)
	c := w.commandLine("--input_shape=x:-1,3,4,6", "--dynamic_batch_size=1,2")
	var echo bytes.Buffer
	c.Echo = &echo
	r, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != 0 || r.Output != filepath.Join(w.folder, "net.om") || r.Emulated || !strings.Contains(echo.String(), "ATC run success") {
		t.Errorf("%+v, printed %q", r, echo.String())
	}
	record, err := ReadRecord(r.Record)
	if err != nil {
		t.Fatal(err)
	}
	if record.Kind != GearsKind || record.Outputs[0].Path != "net.om" || record.Input[0].Path != "net.onnx" || !slices.Equal(record.Arguments, c.Args) || record.Graph != nil {
		t.Errorf("%+v", record)
	}
	// It is no build of `npuctl compile`, which therefore does its own.
	w.job.Gears, w.job.Sizes = "1,2", sizes(map[string]int64{"height": 4, "width": 6})
	result, err := w.job.Run(context.Background())
	if err != nil || result.Builds[0].Status != Built {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestCommandLineThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		behaviour string
		more      []string
		timeout   time.Duration
		family    fault.Family
		want      string
		exitCode  int
	}{
		"refused before it runs": {"", []string{"--input_shape=y:1,3"}, 0, fault.Usage, "atc would refuse this", -1},
		"atc fails":              {"fails", nil, 0, fault.Program, "the chip's operators have nothing for Relu (node second)", 255},
		"too long":               {"hangs", nil, 200 * time.Millisecond, fault.Program, "was stopped", -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, fixedModel, c.behaviour)
			line := w.commandLine(c.more...)
			line.Timeout = c.timeout
			r, err := line.Run(context.Background())
			if fault.FamilyOf(err) != c.family || err == nil || !strings.Contains(err.Error(), c.want) || r.ExitCode != c.exitCode {
				t.Errorf("%v error %v, result %+v", fault.FamilyOf(err), err, r)
			}
			if left := w.leftovers(t); len(left) > 0 {
				t.Errorf("the folder has %v", left)
			}
		})
	}
}

// A command line that fails, in whatever way, leaves the old .om as it was, and one
// that succeeds has made what it says.
func TestCommandLineKeepsTheOld(t *testing.T) {
	for behaviour, want := range map[string]string{
		"fails": "", "lies": "wrote no", "half": "cannot be read", "half-fails": "", "half-hangs": "was stopped",
		"wrong-chip": "it is for Ascend310P3", "wrong-shape": "its input x is [2 3], not 1,3",
		"silent": "it ended with exit code 0 and did not say that it succeeded",
	} {
		for _, hadOld := range []bool{true, false} {
			w := newWorkshop(t, fixedModel, behaviour)
			expected, old := []string{}, filepath.Join(w.folder, "net.om")
			if hadOld {
				writeFile(t, old, "the old one")
				expected = append(expected, "net.om")
			}
			line := w.commandLine()
			if behaviour == "half-hangs" {
				line.Timeout = 300 * time.Millisecond
			}
			_, err := line.Run(context.Background())
			if fault.FamilyOf(err) != fault.Program || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v error %v", behaviour, fault.FamilyOf(err), err)
			}
			if left := w.leftovers(t, expected...); len(left) > 0 {
				t.Errorf("%s: the folder has %v", behaviour, left)
			}
			if hadOld && readAll(t, []string{old}) != "the old one\x00" {
				t.Errorf("%s: the old result has changed", behaviour)
			}
		}
	}
}

// Of what cannot be taken the failure says what it was, as a diagnosis, and where the log
// of the run is, in which all that was printed lies.
func TestWhatIsNoResult(t *testing.T) {
	for behaviour, want := range map[string]string{"half": "", "lies": "wrote no ", "silent": "did not say that it succeeded", "wrong-chip": ""} {
		t.Run(behaviour, func(t *testing.T) {
			w := newWorkshop(t, fixedModel, behaviour)
			check := func(err error, folder string, diagnoses []atc.Diagnosis) {
				t.Helper()
				if fault.FamilyOf(err) != fault.Program || !strings.Contains(err.Error(), " in "+folder) || folder == "" {
					t.Errorf("%v error %v, log in %q", fault.FamilyOf(err), err, folder)
				}
				if (len(diagnoses) > 0) != (want != "") || want != "" && !strings.Contains(diagnoses[0].Message, want) {
					t.Errorf("diagnoses %+v", diagnoses)
				}
				if text := readAll(t, []string{filepath.Join(folder, "stdout.txt")}); !strings.Contains(text, "ATC start working now") {
					t.Errorf("stdout.txt %q", text)
				}
			}
			r, err := w.commandLine().Run(context.Background())
			check(err, r.LogFolder, r.Diagnoses)
			result, err := w.job.Run(context.Background())
			check(err, result.Builds[0].LogFolder, result.Builds[0].Diagnoses)
			if left := w.leftovers(t); len(left) > 0 {
				t.Errorf("the folder has %v", left)
			}
		})
	}
}

// A link that an atc leaves as its .om is none: nobody looks where it leads, and that
// stays as it was.
func TestLinkAsResult(t *testing.T) {
	w := newWorkshop(t, fixedModel, "link")
	secret := filepath.Join(t.TempDir(), "secret")
	writeFile(t, secret, "the first line of a secret\n")
	t.Setenv(linkVariable, secret)
	_, first := w.commandLine().Run(context.Background())
	_, second := w.job.Run(context.Background())
	for _, err := range []error{first, second} {
		if fault.FamilyOf(err) != fault.Program || !strings.Contains(err.Error(), "left a link in the place of ") || strings.Contains(err.Error(), "first line") {
			t.Errorf("%v error %v", fault.FamilyOf(err), err)
		}
	}
	if left := w.leftovers(t); len(left) > 0 || readAll(t, []string{secret}) != "the first line of a secret\n\x00" {
		t.Errorf("the folder has %v", left)
	}
	// One of the user's that the run has replaced comes back, with what it leads to.
	old, link := filepath.Join(t.TempDir(), "old.om"), filepath.Join(w.folder, "net.om")
	writeFile(t, old, "the old one")
	if err := os.Symlink(old, link); err != nil {
		t.Fatal(err)
	}
	if _, err := w.commandLine().Run(context.Background()); fault.FamilyOf(err) != fault.Program {
		t.Errorf("error %v", err)
	}
	if to, err := os.Readlink(link); err != nil || to != old || readAll(t, []string{old}) != "the old one\x00" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// A link of the user's stays one, and the result is written through it.
func TestLinkOfTheUsers(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	real, link := filepath.Join(t.TempDir(), "real.om"), filepath.Join(w.folder, "net.om")
	writeFile(t, real, "the old one")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if _, err := w.commandLine().Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(real); err != nil || info.Size() < 256 {
		t.Errorf("%v, %v", info, err)
	}
	if to, err := os.Readlink(link); err != nil || to != real {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// Two that share the folder of weights run one after the other: what the first takes away
// when it fails is not the second's.
func TestTwoWithWeights(t *testing.T) {
	w := newWorkshop(t, fixedModel, "weights")
	weights := filepath.Join(w.folder, "weight")
	failed := make(chan error)
	go func() {
		_, err := w.commandLine("--external_weight=1", "--log=debug", "--output="+filepath.Join(w.folder, "first")).Run(context.Background())
		failed <- err
	}()
	for range 500 { // until the first is under way
		if _, err := os.Stat(filepath.Join(weights, "weight_of_the_first")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	second := w.commandLine("--external_weight=1")
	waited := false
	second.Progress = func(text string) { waited = waited || strings.HasPrefix(text, "waiting for another npuctl") }
	if _, err := second.Run(context.Background()); err != nil || !waited {
		t.Errorf("the second waited %v: %v", waited, err)
	}
	if err := <-failed; fault.FamilyOf(err) != fault.Program {
		t.Errorf("the first: %v", err)
	}
	if entries, err := os.ReadDir(weights); len(entries) != 1 || entries[0].Name() != "weight_1" {
		t.Errorf("the weights are %v, %v", entries, err)
	}
	// Whoever waits for a folder that is taken away meanwhile gets the lock of the new one.
	folder := filepath.Join(w.folder, "new", "inner")
	first, err := lockFolder(context.Background(), folder, func() { t.Error("nobody has it") })
	if err != nil {
		t.Fatal(err)
	}
	next, err := lockFolder(context.Background(), folder, func() {
		removeEmpty([]string{folder})
		first()
	})
	if err != nil {
		t.Fatal(err)
	}
	third, stopThird := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer stopThird()
	if _, err := lockFolder(third, folder, func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two have the lock: %v", err)
	}
	next()
	// Whoever waits can be stopped.
	unlock, err := lockFolder(context.Background(), w.folder, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, stop := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer stop()
	if _, err := second.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopped: %v", err)
	}
}

// A flag that only a newer CANN can know is for it to judge, unless more is wrong with
// the line and the flag looks like the cause.
func TestFlagsOfANewerCANN(t *testing.T) {
	const refusal = "--new_flag is no flag of ATC"
	for name, c := range map[string]struct {
		emulated bool
		more     []string
		want     string // in the error; "" is a success with a note
	}{
		"alone":                    {false, []string{"--new_flag=1"}, ""},
		"its value apart":          {false, []string{"--new_flag", "1"}, ""},
		"with the emulator":        {true, []string{"--new_flag=1"}, refusal},
		"beside a mistake":         {false, []string{"--new_flag=1", "--input_shape=z:1,3"}, "E10016"},
		"that is a mistake itself": {false, []string{"--soc_versoin=Ascend910B3", "--soc_version="}, "--soc_versoin is no flag of ATC"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, fixedModel)
			if c.emulated {
				w.emulated(t)
			}
			r, err := w.commandLine(c.more...).Run(context.Background())
			switch {
			case c.want != "":
				if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v", err)
				}
			case err != nil:
				t.Error(err)
			case !slices.Contains(r.Notes, "--new_flag: not in npuctl's table of ATC's flags; CANN 8.1.RC1 will decide"):
				t.Errorf("notes %q", r.Notes)
			}
			if len(c.more) > 1 { // --atc-arg takes one word
				return
			}
			w.job.Options.Extra = c.more
			result, err := w.job.Run(context.Background())
			switch {
			case c.want != "":
				if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
					t.Errorf("compile: %v", err)
				}
			case err != nil:
				t.Error(err)
			case !slices.Contains(result.Builds[0].Arguments, "--new_flag=1") || !strings.Contains(strings.Join(result.Builds[0].Notes, "\n"), "--new_flag: not in npuctl's table"):
				t.Errorf("%q, notes %q", result.Builds[0].Arguments, result.Builds[0].Notes)
			}
		})
	}
}

// A run that is stopped brings the old result back.
func TestCommandLineStopped(t *testing.T) {
	w := newWorkshop(t, fixedModel, "half-hangs")
	old := filepath.Join(w.folder, "net.om")
	writeFile(t, old, "the old one")
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	if _, err := w.commandLine().Run(ctx); err == nil {
		t.Fatal("no error")
	}
	if readAll(t, []string{old}) != "the old one\x00" {
		t.Error("the old result has changed")
	}
	if left := w.leftovers(t, "net.om"); len(left) > 0 {
		t.Errorf("the folder has %v", left)
	}
}

// Of the constants beside an .om, those go that a run has left that did not end well;
// what was there stays.
func TestCommandLineStoppedTakesItsWeights(t *testing.T) {
	for _, hadWeights := range []bool{false, true} {
		w := newWorkshop(t, fixedModel, "weights", "half-hangs")
		folder, expected := filepath.Join(w.folder, "weight"), []string{}
		if hadWeights {
			writeFile(t, filepath.Join(folder, "weight_0"), "another model's")
			expected = append(expected, "weight")
		}
		line := w.commandLine("--external_weight=1")
		line.Timeout = 300 * time.Millisecond
		if _, err := line.Run(context.Background()); fault.FamilyOf(err) != fault.Program {
			t.Errorf("%v error %v", fault.FamilyOf(err), err)
		}
		if left := w.leftovers(t, expected...); len(left) > 0 {
			t.Errorf("the folder has %v", left)
		}
		if entries, _ := os.ReadDir(folder); hadWeights && (len(entries) != 1 || readAll(t, []string{filepath.Join(folder, "weight_0")}) != "another model's\x00") {
			t.Errorf("the weights are %v", entries)
		}
	}
}

// A file that was there and is cut off cannot be mended, and is told.
func TestCommandLineTellsOfBrokenWeights(t *testing.T) {
	w := newWorkshop(t, fixedModel, "weights", "half-hangs")
	writeFile(t, filepath.Join(w.folder, "weight", "weight_1"), "all of it")
	line := w.commandLine("--external_weight=1")
	line.Timeout = 300 * time.Millisecond
	if _, err := line.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "weight_1 was cut off") {
		t.Errorf("error %v", err)
	}
}

// What only the tables here do not have, a real CANN decides.
func TestCommandLineUnknownToTheTables(t *testing.T) {
	for _, isEmulated := range []bool{false, true} {
		w := newWorkshop(t, newerModel)
		if isEmulated {
			w.emulated(t)
		}
		r, err := w.commandLine("--soc_version=Ascend999").Run(context.Background())
		switch {
		case isEmulated:
			if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "E19999") {
				t.Errorf("emulated: %v", err)
			}
		case err != nil:
			t.Error(err)
		default:
			if all := strings.Join(r.Notes, "\n"); !strings.Contains(all, "atc will decide") || !strings.Contains(all, "Abs, Relu: not in npuctl's table of ATC's parser") || strings.Contains(all, "note:") {
				t.Errorf("notes %s", all)
			}
		}
	}
}

// No time at all is too little, and no mistake of the machine.
func TestCommandLineNoTime(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	line := w.commandLine()
	line.Timeout = time.Nanosecond
	if _, err := line.Run(context.Background()); fault.FamilyOf(err) != fault.Program {
		t.Errorf("%v error %v", fault.FamilyOf(err), err)
	}
}

// A folder of the result's name is not touched, and a model is not written over.
func TestCommandLineRefusesPlaces(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	inside := filepath.Join(w.folder, "net.om", "precious.txt")
	writeFile(t, inside, "x")
	if _, err := w.commandLine().Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("%v", err)
	}
	if readAll(t, []string{inside}) != "x\x00" {
		t.Error("it has changed")
	}
}

func TestGearsOf(t *testing.T) {
	for _, c := range []struct {
		list arguments
		want string
	}{
		{arguments{{"dynamic_batch_size", "1,2"}}, "1 2"},
		{arguments{{"model", "x"}, {"dynamic_dims", "1,2;3,4"}}, "1,2 3,4"},
		{arguments{{"dynamic_image_size", "8,8;9,9"}}, "8,8 9,9"},
		{arguments{{"model", "x"}}, ""},
	} {
		if got := strings.Join(gearsOf(c.list), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.list, got, c.want)
		}
	}
}
