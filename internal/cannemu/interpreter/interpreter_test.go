package interpreter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx/text"
)

// conversation builds requests.
type conversation struct{ bytes.Buffer }

func (c *conversation) put(values ...any) *conversation {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			c.put(uint32(len(v)))
			c.WriteString(v)
		case []byte:
			c.Write(v)
		default:
			if err := binary.Write(&c.Buffer, binary.LittleEndian, v); err != nil {
				panic(err)
			}
		}
	}
	return c
}

func (c *conversation) load(model []byte) *conversation {
	return c.put(byte(loadRequest), uint64(len(model)), model)
}

// float32s is a tensor of floats.
func float32s(name string, dims []int64, values ...float32) []byte {
	c := new(conversation).put(name, int32(0), uint32(len(dims)), dims, uint64(4*len(values)), values)
	return c.Bytes()
}

func model(t testing.TB, source string) []byte {
	t.Helper()
	data, err := text.MustParse(t, source).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const sum = `<ir_version: 8, opset_import: ["": 17]> (float[N] x, float[N] y) => (float[N] total, bool[N] more) {
	total = Add (x, y)
	more = Greater (x, y)
}`

func serve(t *testing.T, requests []byte) (replies *bytes.Buffer, err error) {
	t.Helper()
	replies = &bytes.Buffer{}
	err = Serve(context.Background(), bytes.NewReader(requests), replies, Options{Threads: 1})
	return replies, err
}

func TestLoadRunUnload(t *testing.T) {
	var c conversation
	c.load(model(t, sum))
	c.put(byte(runRequest), uint32(1), uint32(2), float32s("y", []int64{2}, 10, 20), float32s("x", []int64{2}, 1, 30))
	c.put(byte(unloadRequest), uint32(1))
	got, err := serve(t, c.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var want conversation
	want.put(uint32(0), uint32(1))
	want.put(uint32(0), uint32(2), float32s("total", []int64{2}, 11, 50))
	want.put("more", int32(12), uint32(1), int64(2), uint64(2), []byte{0, 1})
	want.put(uint32(0))
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("got  %x\nwant %x", got.Bytes(), want.Bytes())
	}
}

// What a request has wrong is told, and the next request is served.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name    string
		request func(c *conversation)
		want    string
	}{
		{"no model", func(c *conversation) { c.load([]byte("no model")) }, "load: "},
		{"an operator nobody knows", func(c *conversation) {
			c.load(model(t, `(float[1] x) => (y) { y = org.example.Frob (x) }`))
		}, "Frob"},
		{"another number", func(c *conversation) { c.put(byte(runRequest), uint32(7), uint32(0)) }, "there is no model 7"},
		{"unload another", func(c *conversation) { c.put(byte(unloadRequest), uint32(7)) }, "there is no model 7"},
		{"an input is missing", func(c *conversation) {
			c.put(byte(runRequest), uint32(1), uint32(1), float32s("x", []int64{1}, 1))
		}, `"y"`},
		{"an input twice", func(c *conversation) {
			c.put(byte(runRequest), uint32(1), uint32(2), float32s("x", []int64{1}, 1), float32s("x", []int64{1}, 1))
		}, `"x" is given twice`},
		{"a size that does not fit", func(c *conversation) {
			c.put(byte(runRequest), uint32(1), uint32(1), float32s("x", []int64{3}, 1))
		}, `input "x"`},
		{"a negative dim", func(c *conversation) {
			c.put(byte(runRequest), uint32(1), uint32(1), float32s("x", []int64{-1}, 1))
		}, `input "x"`},
		{"a type that is none", func(c *conversation) {
			c.put(byte(runRequest), uint32(1), uint32(1), "x", int32(5), uint32(0), uint64(0))
		}, "aclDataType 5"},
		{"strings", func(c *conversation) {
			c.put(byte(runRequest), uint32(1), uint32(1), "x", int32(13), uint32(0), uint64(0))
		}, `input "x"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c conversation
			c.load(model(t, sum))
			test.request(&c)
			c.put(byte(unloadRequest), uint32(1))
			got, err := serve(t, c.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got.Next(8) // of load
			message := failure(t, got)
			if !strings.Contains(message, test.want) {
				t.Errorf("said %q, want %q", message, test.want)
			}
			if rest := got.Bytes(); !bytes.Equal(rest, []byte{0, 0, 0, 0}) {
				t.Errorf("unload afterwards: % x", rest)
			}
		})
	}
}

// failure reads the reply of a request that was refused.
func failure(t *testing.T, replies *bytes.Buffer) string {
	t.Helper()
	var head struct{ Status, Length uint32 }
	if err := binary.Read(replies, binary.LittleEndian, &head); err != nil {
		t.Fatal(err)
	}
	if head.Status == 0 {
		t.Fatal("it succeeded")
	}
	return string(replies.Next(int(head.Length)))
}

// Noise is answered once and ends the conversation, without memory for what it claims.
func TestNoise(t *testing.T) {
	for _, test := range []struct {
		name    string
		request []byte
		want    string
	}{
		{"an unknown request", []byte{99}, "no such request"},
		{"a model that ends early", new(conversation).put(byte(loadRequest), uint64(3<<30), []byte("abc")).Bytes(), "unexpected EOF"},
		{"a model beyond all bounds", new(conversation).put(byte(loadRequest), uint64(math.MaxUint64)).Bytes(), "beyond"},
		{"too many inputs", new(conversation).put(byte(runRequest), uint32(1), uint32(math.MaxUint32)).Bytes(), "beyond"},
		{"a long name", new(conversation).put(byte(runRequest), uint32(1), uint32(1), uint32(math.MaxUint32)).Bytes(), "beyond"},
		{"a high rank", new(conversation).put(byte(runRequest), uint32(1), uint32(1), "x", int32(0), uint32(1000)).Bytes(), "beyond"},
		{"a huge tensor", new(conversation).put(byte(runRequest), uint32(1), uint32(1), "x", int32(0), uint32(0), uint64(math.MaxUint64)).Bytes(), "beyond"},
		{"half a number", []byte{runRequest, 1, 0}, "unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := serve(t, test.request)
			if err == nil {
				t.Fatal("it goes on")
			}
			if message := failure(t, got); !strings.Contains(message, test.want) {
				t.Errorf("said %q, want %q", message, test.want)
			}
		})
	}
}

func TestEndOfInput(t *testing.T) {
	if got, err := serve(t, nil); err != nil || got.Len() != 0 {
		t.Errorf("%v, %d bytes", err, got.Len())
	}
}

// brokenPipe is an output whose reader is gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestReaderIsGone(t *testing.T) {
	request := new(conversation).put(byte(unloadRequest), uint32(1)).Bytes()
	if err := Serve(context.Background(), bytes.NewReader(request), brokenPipe{}, Options{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

func FuzzInterpreter(f *testing.F) {
	var c conversation
	c.load(model(f, sum))
	c.put(byte(runRequest), uint32(1), uint32(2), float32s("x", []int64{1}, 1), float32s("y", []int64{1}, 2))
	c.put(byte(unloadRequest), uint32(1))
	f.Add(c.Bytes())
	f.Add([]byte{runRequest, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'x', 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{loadRequest, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, requests []byte) {
		var replies bytes.Buffer
		if err := Serve(context.Background(), bytes.NewReader(requests), &replies, Options{Threads: 1, MaxBytes: 1 << 20}); err == nil && len(requests) > 0 && replies.Len() == 0 {
			t.Error("a request without a reply")
		}
	})
}
