package atc

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same complaint as releases from 2020 on print it.
func TestReadLogForms(t *testing.T) {
	const failed = "ATC run failed, Please check the detail log, Try 'atc --help' for more information\n"
	for name, c := range map[string]struct {
		text string
		want []Message
	}{
		"code and text": {
			"E19010: No parser for the node.\n        Model parse failed.[FUNC:Parse][FILE:onnx_parser.cc][LINE:847]\n",
			[]Message{{Code: "E19010", Text: "No parser for the node."}, {Text: "Model parse failed.", Nested: true, Place: "onnx_parser.cc:847"}},
		},
		"time, no process": {
			"EZ9999: 2024-10-31-12:08:42.276.420  The chip says no.\n",
			[]Message{{Code: "EZ9999", Text: "The chip says no."}},
		},
		"process and time": {
			"EC0010: [PID: 5948] 2025-04-21-15:00:19.776.801 No such module.\n        Possible Cause: It is missing.\n        Solution: 1. Install it.\n           2. Or not.\n",
			[]Message{{Code: "EC0010", Text: "No such module.", Cause: "It is missing.", Solution: "1. Install it. 2. Or not."}},
		},
		"title before the code": {
			"[PID: 758] 2026-05-08-03:20:31.532.507 Invalid_Argument(EL0003): Not valid.\n",
			[]Message{{Code: "EL0003", Title: "Invalid_Argument", Text: "Not valid."}},
		},
		"title, no process": {
			"Resource_Error(EE1023): No more.\n",
			[]Message{{Code: "EE1023", Title: "Resource_Error", Text: "No more."}},
		},
		"internal, content without a colon": {
			"E19999: Internal Error\nE19999 The versions differ.\n",
			[]Message{{Code: "E19999", Text: "The versions differ."}},
		},
		"internal, content with process and time": {
			"EH9999: Inner Error!\nEH9999: [PID: 1439] 2025-04-28-02:50:24.965.356 No description.[FUNC:Report][FILE:log.cpp][LINE:145]\n" +
				"        TraceBack (most recent call last):\n       Init failed.[FUNC:Init][FILE:lib.cc][LINE:177]\n",
			[]Message{{Code: "EH9999", Text: "No description.", Place: "log.cpp:145"}, {Text: "Init failed.", Nested: true, Place: "lib.cc:177"}},
		},
		"internal, the code three times": {
			"E19999: Inner Error!\nE19999[PID: 77] 2026-11-30-16:22:36.861.696 (E19999):  Not done.[FUNC:f][FILE:f.cc][LINE:3]\n",
			[]Message{{Code: "E19999", Text: "Not done.", Place: "f.cc:3"}},
		},
		"a digit lost": {
			"EL003: Not valid.\n",
			[]Message{{Code: "EL0003", Text: "Not valid."}},
		},
		"something in front": {
			"(Worker pid=753) ERROR 04-30 03:58:27 [worker.py:949] [ACL ERROR] EE1001: [PID: 106] 2025-10-30-08:21:08.817.477 Not valid.\n",
			[]Message{{Code: "EE1001", Text: "Not valid."}},
		},
		"nested codes": {
			"EZ3003: No kernel for [a].\n        TraceBack (most recent call last):\n        EZ3002: Not for this type.\n        And so on.\n",
			[]Message{{Code: "EZ3003", Text: "No kernel for [a]."}, {Code: "EZ3002", Text: "Not for this type.", Nested: true}, {Text: "And so on.", Nested: true}},
		},
		"no code at all": {
			"No supported Ops kernel and engine are found for [a], optype [B].\n",
			[]Message{{Text: "No supported Ops kernel and engine are found for [a], optype [B]."}},
		},
		"process log on the screen": {
			"[ERROR] GE(12,atc.bin):2025-03-18-14:35:48.619.348 [model_utils.cc:1313]12 GetInfo: ErrorNo: 4294967295(failed) [LOAD][DEFAULT]It is too small.\n" +
				"[INFO] GE(12,atc.bin):2025-03-18-14:35:48.619.348 [model_utils.cc:1]12 Fine.\n",
			[]Message{{Text: "It is too small.", Place: "model_utils.cc:1313"}},
		},
		"options": {
			"ERROR: unknown command line flag 'modle'\n",
			[]Message{{Text: "unknown command line flag 'modle'", IsFlagError: true}},
		},
		"not ours": {
			"E1212 03:05:00.535254 11684 backend_model.cc:553] oh\n",
			[]Message{{Text: "E1212 03:05:00.535254 11684 backend_model.cc:553] oh"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := ReadLog("ATC start working now, please wait for a moment.\n...\n" + failed + c.text)
			if !l.Started || !l.Failed || l.Succeeded {
				t.Errorf("started %v, failed %v, succeeded %v", l.Started, l.Failed, l.Succeeded)
			}
			if diff := cmp.Diff(c.want, l.Messages); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadLogOfSuccess(t *testing.T) {
	l := ReadLog("ATC start working now, please wait for a moment.\n....\nATC run success, welcome to the next use.\n\n")
	if !l.Succeeded || l.Failed || len(l.Messages) != 0 {
		t.Errorf("%+v", l)
	}
}

func TestLeadingCode(t *testing.T) {
	for text, want := range map[string]string{
		"E19999: Inner Error!\nE19999: deep\n\nE20001: outer\n": "E20001",
		"EZ9999: alone\n":                        "EZ9999",
		"W11001: slow\nE10001: wrong\n":          "E10001",
		"EE9999: one\nEH9999: two\n":             "EE9999",
		"nothing\n":                              "",
		"E99: no code\nE123456: neither\nEX12 :": "",
	} {
		if got := ReadLog(text).Leading(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What a failure means, by texts as the compiler writes them: the first diagnosis
// must name what there is to act on.
func TestDiagnose(t *testing.T) {
	const parser = "E19010: No parser is registered for Op [%s, optype [ai.onnx::%s]].\n"
	for name, c := range map[string]struct {
		log     string
		process []LogLine
		facts   Facts
		code    string
		names   []string
		message string
		remedy  string
	}{
		"python module": {
			log:  "EC0010: [PID: 1] 2025-07-08-10:25:28.680.962 Failed to import Python module [ModuleNotFoundError: No module named 'attr'.].\n",
			code: "EC0010", names: []string{"attr", "attrs"}, message: "no module attr", remedy: "pip install attrs",
		},
		"module of the toolkit": {
			log:  "E40020: Failed to import Python module [ModuleNotFoundError: No module named 'tbe.common'.].\n",
			code: "E40020", names: []string{"tbe.common", "PYTHONPATH"}, remedy: "set_env.sh",
		},
		"numpy": {
			log:  "EC0010: Failed to import Python module [AttributeError: `np.float_` was removed in the NumPy 2.0 release.].\n",
			code: "EC0010", names: []string{"numpy"}, remedy: "numpy<2",
		},
		"the driver's library": {
			log:   "/opt/bin/atc.bin: error while loading shared libraries: libascend_hal.so: cannot open shared object file\n",
			names: []string{"libascend_hal.so", "LD_LIBRARY_PATH"}, remedy: "devlib",
		},
		"another library": {
			log:   "atc.bin: error while loading shared libraries: libge.so: cannot open shared object file\n",
			names: []string{"libge.so"}, remedy: "set_env.sh",
		},
		"operators without a parser": {
			log:  strings.ReplaceAll(parser, "%s", "a/Foo") + "        TraceBack (most recent call last):\n        No parser is registered for Op [b, optype [ai.onnx::13::Bar]].\n",
			code: "E19010", names: []string{"Bar", "b"}, message: "ATC knows no operator",
		},
		"one operator at two nodes": {
			log:  strings.ReplaceAll(parser, "%s", "13::Foo") + "        TraceBack (most recent call last):\n        No parser is registered for Op [b, optype [ai.onnx::13::Foo]].\n",
			code: "E19010", names: []string{"Foo", "b"}, message: "no operator Foo (first",
		},
		"the newest words for it": {
			log:  "E13010: No operator plugin is registered for Op: odd, optype: my.own::1::Strange.\n",
			code: "E13010", names: []string{"Strange", "odd"}, message: "ATC knows no operator Strange",
		},
		"an opset too new": {
			log:  "E16002: No parser is registered for Op [n, optype [ai.onnx::23::Div]].\n",
			code: "E16002", names: []string{"opset 23"}, message: "does not read opset 23", remedy: "opset 18 or lower",
		},
		"an opset too new, by the model": {
			log:   "EZ9010: No parser is registered for Op [n, optype [Div]].\n",
			facts: Facts{Opset: 21}, code: "EZ9010", names: []string{"opset 21"},
		},
		"no kernel": {
			log:  "EZ3003: [PID: 3] 2025-02-25-14:07:19.774.362 No supported Ops kernel and engine are found for [norm], optype [RmsNorm].\n",
			code: "EZ3003", names: []string{"RmsNorm", "norm"},
		},
		"a gear's branch": {
			log:   "E20001: [PID: 2] 2025-06-16-13:02:36.801.136 Failed to compile Op [/layers.4/Slice_ascend_mbatch_batch_1]. (optype: [StridedSliceD])\n",
			facts: Facts{Gears: []string{"1,128", "1,256"}}, code: "E20001",
			names: []string{"StridedSliceD", "/layers.4/Slice", "gear 1 (1,256)"}, message: "gear 1 (1,256)",
		},
		"an open dim": {
			log:  "E10001: Value [-1] for parameter [image] is invalid. Reason: maybe you should set input_shape\n",
			code: "E10001", names: []string{"image", "--input_shape"},
		},
		"two domains": {
			log:  "E16005: The model has [2] [--domain_version] fields, but only one is allowed.\n",
			code: "E16005", names: []string{"opset_import"},
		},
		"a code of the table": {
			log:  "E10009: The options cannot be used together: [--dynamic_dims] and [--dynamic_batch_size].\n",
			code: "E10009", names: []string{"--dynamic_dims", "--dynamic_batch_size"}, message: "mixed",
		},
		"a code of no table": {
			log:  "E65432: something about [conv1]\n",
			code: "E65432", names: []string{"conv1"}, message: "checks of an operator",
		},
		"a fault of a kernel under a misleading code": {
			log: "[PID: 7] 2026-05-08-03:20:31.532.507 Invalid_Argument(EL0003): The argument is invalid.\n        TraceBack (most recent call last):\n" +
				"        The error from device(0), there is an aicore error, core id is 0, error code = 0x800000, dump info: 0\n",
			code: "EL0003", names: []string{"0x800000"},
		},
		"internal, and what lies below": {
			log:  "E19999: Inner Error!\nE19999: [PID: 1] 2025-07-08-10:25:28.680.962 It failed\n        TraceBack (most recent call last):\n        build graph failed\n        subgraph of node [conv_1] failed\n",
			code: "E19999", names: []string{"conv_1"}, message: "below it: subgraph of node [conv_1] failed",
		},
		"a number alone":           {log: "aclmdlExecute failed, ret = 0x7BC83\n", names: []string{"507011"}},
		"a container without card": {log: "dcmi module initialize failed. ret is -8005\n", names: []string{"-8005"}, remedy: "davinci_manager"},
		"an option":                {log: "ERROR: unknown command line flag '--modle'\n", code: CodeStderr, names: []string{"--modle"}, remedy: "--check"},
		"killed":                   {facts: Facts{ExitCode: 137}, names: []string{"TE_PARALLEL_COMPILER"}, message: "memory"},
		"killed itself":            {facts: Facts{Signal: "killed", ExitCode: -1}, names: []string{"TE_PARALLEL_COMPILER"}},
		"crashed":                  {facts: Facts{Signal: "segmentation fault", ExitCode: -1}, message: "segmentation fault"},
		"no word":                  {message: "without a word"},
		"an unknown text":          {log: "It did not work out.\n", message: "It did not work out."},
		"only the process log":     {process: []LogLine{{Text: "graph of [conv1] is odd"}}, message: "graph of [conv1] is odd"},
		"disk full, in the log":    {process: []LogLine{{Text: "write failed: No space left on device"}}, message: "disk is full"},
		"python died for memory":   {log: "EOFError\n", names: []string{"TE_PARALLEL_COMPILER"}},
		"environment leads astray": {log: "[ASCEND_OPP_PATH] is invalid when loading the tiling lib\n", names: []string{"ASCEND_OPP_PATH", "set_env.sh"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Diagnose(ReadLog(c.log), c.process, c.facts)
			first := got[0]
			if first.Code != c.code {
				t.Errorf("code %q, want %q", first.Code, c.code)
			}
			for _, n := range c.names {
				if !slices.Contains(first.Names, n) {
					t.Errorf("names are %q without %q", first.Names, n)
				}
			}
			if !strings.Contains(first.Message, c.message) || !strings.Contains(first.Remedy, c.remedy) || first.Message == "" || first.Remedy == "" {
				t.Errorf("message %q, remedy %q", first.Message, first.Remedy)
			}
			for _, d := range got {
				if strings.Contains(d.Message+d.Remedy, "{") {
					t.Errorf("a template is left: %q %q", d.Message, d.Remedy)
				}
			}
		})
	}
}

func TestUserNode(t *testing.T) {
	for name, want := range map[string]NodeName{
		"/a/Conv":                                    {"/a/Conv", -1, false},
		"/a/Slice_ascend_mbatch_batch_5":             {"/a/Slice", 5, false},
		"-1_0_/a/Slice_ascend_mbatch_batch_0":        {"/a/Slice", 0, false},
		"trans_Cast_0":                               {"trans_Cast_0", -1, true},
		"bn/Norm_1_filter_host":                      {"bn/Norm_1", -1, true},
		"x_ascend_mbatch_batch_99999999999999999999": {"x", -1, false},
	} {
		if got := UserNode(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Every code of the table says what it means and what to do; no code is there twice.
func TestCodesTable(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(codesTable), "\n")
	if len(lines)-1 != len(codes()) {
		t.Errorf("%d lines for %d codes", len(lines)-1, len(codes()))
	}
	for code, e := range codes() {
		if !codePattern.MatchString(code+":") || e.Meaning == "" || e.Remedy == "" {
			t.Errorf("%+v", e)
		}
	}
	for _, code := range internalCodes {
		if _, ok := codes()[code]; !ok {
			t.Errorf("%s is not in the table", code)
		}
	}
}

func TestExplain(t *testing.T) {
	for code, want := range map[string]string{"E10009": "mixed", "EE4711": "runtime", "E10999": "options or the model", "E40077": "compiler of operators"} {
		if e, ok := Explain(code); !ok || !strings.Contains(e.Meaning, want) {
			t.Errorf("%s: %+v %v", code, e, ok)
		}
	}
	if e, ok := Explain("EQ0001"); ok {
		t.Errorf("an unknown code is explained: %+v", e)
	}
	for damaged, want := range map[string]string{"EL003": "EL0003", "E1001": "", "E9999": "", "EQ001": ""} {
		if got := repairCode(damaged); got != want {
			t.Errorf("%s: %q, want %q", damaged, got, want)
		}
	}
}

func TestParseLogLine(t *testing.T) {
	for line, want := range map[string]LogLine{
		"[ERROR] RUNTIME(10686,atc.bin):2025-03-19-15:09:46.643.861 [engine.cc:123]10686 Report:[EXEC][DEFAULT]It broke": {
			"ERROR", "RUNTIME", "atc.bin", "2025-03-19-15:09:46.643.861", "engine.cc:123", "It broke"},
		"[ERROR] AMCT(21177,atc.bin):2023-04-14-14:43:17[utils.cpp:133]sizes [1] and [2] differ": {
			"ERROR", "AMCT", "atc.bin", "2023-04-14-14:43:17", "utils.cpp:133", "sizes [1] and [2] differ"},
		"[WARNING] TEFUSION(1,python3):2025-03-19-15:09:46.643.861 [a.py:1]slow": {
			"WARNING", "TEFUSION", "python3", "2025-03-19-15:09:46.643.861", "a.py:1", "slow"},
	} {
		if got, ok := ParseLogLine(line); !ok || got != want {
			t.Errorf("%s:\n got %+v %v\nwant %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "[ERROR] something", "E19999: no", "[LOUD] GE(1,a):2025-03-19-15:09:46 [a:1]x"} {
		if got, ok := ParseLogLine(line); ok {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

func FuzzReadLog(f *testing.F) {
	for _, seed := range []string{
		"ATC run failed\nE19010: No parser is registered for Op [a, optype [ai.onnx::11::B]].\n  Solution: 1. x\n 2. y\n TraceBack (most recent call last):\n  c[FUNC:f][FILE:g][LINE:1]\n",
		"E19999: Inner Error!\nE19999[PID: 1] 2026-11-30-16:22:36.861.696 (E19999):  x\n", "EL003: x", "E00000)", "[PID: 1] Title(EE1001): y",
		"[ERROR] GE(1,a):2025-03-18-14:35:48.619.348 [m.cc:1]1 F: ErrorNo: 1(x) [L][D]t", "ERROR: flag '--x'", "\xff\x00E10001:\n", "  E10001 ",
		"Failed to compile Op [-1_0_/a_ascend_mbatch_batch_7]. (optype: [B])", "ret: 0x7BC80 and ret = 507011",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := ReadLog(text)
		if len(l.Messages) > maxMessages {
			t.Errorf("%d messages", len(l.Messages))
		}
		for _, m := range l.Messages {
			if m.Code != "" && !codePattern.MatchString(m.Code+":") {
				t.Errorf("code %q", m.Code)
			}
		}
		found := Diagnose(l, nil, Facts{})
		if len(found) == 0 || found[0].Message == "" || found[0].Remedy == "" {
			t.Errorf("no diagnosis of %q: %+v", text, found)
		}
	})
}

// What matters stands behind everything that a chatty log level prints.
func TestReadLogReadsTheEnd(t *testing.T) {
	chatter := strings.Repeat("[INFO] GE(1,atc):2026-11-30-10:00:00 one more step\n", 3*maxPlain)
	if l := ReadLog(chatter + "ATC run success, welcome to the next use.\n"); !l.Succeeded || len(l.Messages) > maxMessages {
		t.Errorf("succeeded %t, %d messages", l.Succeeded, len(l.Messages))
	}
	l := ReadLog(chatter + "ATC run failed, Please check the detail log\nE10001: Value [x] for parameter [--foo] is invalid.\n")
	if last := l.Messages[len(l.Messages)-1]; !l.Failed || last.Code != "E10001" {
		t.Errorf("failed %t, last %+v", l.Failed, last)
	}
}

// Success that is said and not kept is told as that.
func TestSuccessWithAnExitCode(t *testing.T) {
	log := ReadLog("ATC start working now, please wait for a moment.\nATC run success, welcome to the next use.\n")
	if d := Diagnose(log, nil, Facts{ExitCode: 255}); !strings.Contains(d[0].Message, "exit code 255") {
		t.Errorf("%+v", d)
	}
}
