package tritonserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// State says what became of a model.
type State string

// The states.
const (
	Ready   State = "ready"   // it is served
	Refused State = "refused" // the server does not load it
	Killed  State = "killed"  // the server died over it
	Hung    State = "hung"    // no answer within the patience
)

// Outcome is what the server did with one model.
type Outcome struct {
	Model string `json:"model"`
	State State  `json:"state"`
	// Cause is what the server said, without the paths of its folders; empty when Ready.
	Cause string `json:"cause,omitempty"`
	// Line and Column are where it points to in config.pbtxt; 0 when it does not.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// MissingBackend is the backend that the server does not have, when that is the cause.
	MissingBackend string `json:"missing_backend,omitempty"`
	// StandIns are backends that were replaced during the load.
	StandIns []string      `json:"-"`
	Took     time.Duration `json:"-"`
}

// Entry is a version of a model in the server's index. A model that is not loaded may
// have neither version nor state.
type Entry struct {
	Model, Version string
	// State is READY, UNAVAILABLE, LOADING, UNLOADING or empty.
	State, Reason string
}

// Index lists what the repository holds. Loading is not part of it.
func (s *Server) Index(ctx context.Context) ([]Entry, error) {
	answer, err := s.rpc.call(ctx, "RepositoryIndex", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the server for its models: %w", err)
	}
	return readIndex(answer)
}

// Unload takes a model, and the steps of an ensemble that nothing else needs, out.
func (s *Server) Unload(ctx context.Context, model string) error {
	if _, err := s.rpc.call(ctx, "RepositoryModelUnload", modelRequest(model)); err != nil {
		return fmt.Errorf("unload %s: %w", model, err)
	}
	return nil
}

// Load loads a model of the repository, its folder's name, and gives what became of it.
// After Killed and Hung the server is of no more use. The error is that of ctx alone, or
// one of the connection while the server lives.
func (s *Server) Load(ctx context.Context, model string) (Outcome, error) {
	patience := orElse(s.options.LoadPatience, loadPatience)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	offset, start := s.logSize(), time.Now()
	_, err := s.rpc.call(limited, "RepositoryModelLoad", modelRequest(model))
	out := Outcome{Model: model, State: Ready, StandIns: s.standIns, Took: time.Since(start)}
	var status *rpcError
	switch {
	case err == nil && !s.hasEnded():
		return out, nil
	case ctx.Err() != nil:
		return out, ctx.Err()
	case s.endsSoon(dying):
		out.State, out.Cause = Killed, s.lastSaid(offset)
	case limited.Err() != nil:
		out.State = Hung
		out.Cause = fmt.Sprintf("no answer to the load within %s", patience)
	case errors.As(err, &status):
		out.State = Refused
		out.Cause = causeOf(model, status.Message, complaints(s.Log(offset)))
	default:
		return out, fmt.Errorf("load %s: %w", model, err)
	}
	out.Cause = s.withoutPaths(out.Cause)
	out.Line, out.Column = placeIn(out.Cause)
	out.MissingBackend = missingBackend(out.Cause)
	return out, nil
}

// dying is how long a server that breaks a connection may take to be gone.
const dying = 500 * time.Millisecond

// endsSoon says whether the server ends within a time.
func (s *Server) endsSoon(wait time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(wait):
		return false
	}
}

// lastSaid says how a server ended, with its last words since an offset in the log.
func (s *Server) lastSaid(offset int64) string {
	text := howItEnded(s.cmd.ProcessState)
	if said := complaints(s.Log(offset)); len(said) > 0 {
		text += "; " + said[len(said)-1]
	}
	return s.withoutPaths(text)
}

// withoutPaths takes the folders out of what the server says.
func (s *Server) withoutPaths(text string) string {
	for _, folder := range []string{s.repository, containerRepository, s.backendFolder(), s.installation.backends, s.folder} {
		if folder != "" {
			text = strings.ReplaceAll(text, strings.TrimRight(folder, "/")+"/", "")
		}
	}
	return text
}

// LoadEach loads models of a repository, one after another, and unloads each before the
// next: a model is judged by itself. After one that kills the server, or hangs, a new
// server goes on. Told, when it is there, hears each outcome as it comes.
func (i Installation) LoadEach(ctx context.Context, repository string, models []string, o Options, told func(Outcome)) (out []Outcome, err error) {
	var s *Server
	defer func() {
		if s != nil {
			s.Stop()
		}
	}()
	for _, model := range models {
		if s == nil {
			if s, err = i.Start(ctx, repository, o); err != nil {
				return out, err
			}
		}
		outcome, err := s.judge(ctx, model)
		if err != nil {
			return out, err
		}
		out = append(out, outcome)
		if told != nil {
			told(outcome)
		}
		if outcome.State == Killed || outcome.State == Hung || s.hasEnded() {
			s.Stop()
			s = nil
		}
	}
	return out, ctx.Err()
}

// judge loads a model and unloads it again. A server may also die of what it has loaded.
func (s *Server) judge(ctx context.Context, model string) (Outcome, error) {
	offset := s.logSize()
	outcome, err := s.Load(ctx, model)
	if err != nil || outcome.State == Killed || outcome.State == Hung {
		return outcome, err
	}
	if err := s.Unload(ctx, model); err != nil && s.endsSoon(dying) && ctx.Err() == nil {
		outcome.State, outcome.Cause = Killed, "after loading: "+s.lastSaid(offset)
	}
	return outcome, nil
}
