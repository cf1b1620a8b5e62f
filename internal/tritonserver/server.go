package tritonserver

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/processgroup"
)

// Options say how a server runs.
type Options struct {
	// StandIns are backends that a stand-in replaces when the server has none of the name.
	StandIns []string
	// Strict switches the server's completion of configurations off.
	Strict bool
	// StartPatience bounds how long the server may take until it answers; 60 s when 0.
	StartPatience time.Duration
	// LoadPatience bounds how long one model may load; 60 s when 0.
	LoadPatience time.Duration
	// MemoryLimit bounds the server's address space in bytes; 12 GiB when 0.
	MemoryLimit uint64
	// Arguments are further ones for the server.
	Arguments []string
	// Environment are further variables, as NAME=value.
	Environment []string
}

const (
	startPatience = 60 * time.Second
	loadPatience  = 60 * time.Second
	// exitSeconds is what the server gives its own requests when it is asked to end;
	// stopPatience is what it has in all before it is killed.
	exitSeconds  = 3
	stopPatience = 8 * time.Second
	// guardPatience is what the server has when npuctl itself is gone.
	guardPatience = 5 * time.Second
	pollInterval  = 20 * time.Millisecond
	memoryLimit   = 12 << 30
)

func (o Options) memory() uint64 {
	if o.MemoryLimit == 0 {
		return memoryLimit
	}
	return o.MemoryLimit
}

func memoryText(n uint64) string { return strconv.FormatUint(n, 10) + "b" }

func orElse(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}

// Server is a running server. It serves no model until [Server.Load].
type Server struct {
	// HTTP, GRPC and Metrics are its addresses, as 127.0.0.1:port.
	HTTP, GRPC, Metrics string

	installation Installation
	options      Options
	repository   string
	folder       string // everything it makes; removed at the end
	name         string // unique on this machine: of the container and of shared memory
	standIns     []string

	cmd     *exec.Cmd
	group   *processgroup.Group
	ended   chan struct{} // closed when the process has ended
	stopped sync.Once
	rpc     *rpcClient
}

// StandIns are the backends that a stand-in has taken the place of.
func (s *Server) StandIns() []string { return s.standIns }

func (s *Server) addresses() []string { return []string{s.HTTP, s.GRPC, s.Metrics} }

// attempts is how often a start is tried: between choosing a port and the server's
// taking it, somebody else may.
const attempts = 3

// Start runs the server over a repository, a folder of models, and waits until it
// answers. It ends with ctx at the latest; call [Server.Stop] in any case. An error of
// the family Program says why the server did not start.
func (i Installation) Start(ctx context.Context, repository string, o Options) (*Server, error) {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	for try := 1; ; try++ {
		s, err := i.start(ctx, repository, o)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if try == attempts || !strings.Contains(err.Error(), "ddress already in use") && !strings.Contains(err.Error(), "failed to bind") {
			return nil, err
		}
	}
}

func (i Installation) start(ctx context.Context, repository string, o Options) (*Server, error) {
	folder, err := os.MkdirTemp("", "npuctl-triton-")
	if err != nil {
		return nil, fault.New(fault.Missing, "make a folder for the server: %w", err)
	}
	s := &Server{installation: i, options: o, repository: repository, folder: folder, name: "npuctl-" + rand.Text(), ended: make(chan struct{})}
	if err := s.prepare(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	if err := s.awaitLive(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// prepare chooses ports and lays the backends out.
func (s *Server) prepare(ctx context.Context) error {
	var ports [3]string
	for n := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fault.New(fault.Missing, "find a free port: %w", err)
		}
		ports[n] = listener.Addr().String()
		defer listener.Close() // only once all are chosen, so that they differ
	}
	s.HTTP, s.GRPC, s.Metrics = ports[0], ports[1], ports[2]
	s.rpc = newRPCClient(s.GRPC)
	return s.layBackends(ctx)
}

func (s *Server) backendFolder() string { return filepath.Join(s.folder, "backends") }

// layBackends makes a folder with the server's own backends, by links, and stand-ins.
func (s *Server) layBackends(ctx context.Context) error {
	folder, i := s.backendFolder(), s.installation
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fault.New(fault.Missing, "lay the server's backends out: %w", err)
	}
	isThere := func(name string) bool { return isFolder(filepath.Join(folder, name)) }
	if i.Engine != "" {
		isThere = func(name string) bool { return i.hasInImage(ctx, name) }
	} else if err := s.linkBackends(folder); err != nil {
		return fault.New(fault.Missing, "lay the server's backends out: %w", err)
	}
	added, err := addStandIns(ctx, folder, s.options.StandIns, isThere)
	if err != nil && !isMissingCompiler(err) {
		return err
	}
	s.standIns = added
	return nil
}

func (s *Server) linkBackends(folder string) error {
	i := s.installation
	entries, err := os.ReadDir(i.backends)
	if err != nil {
		return nil // a server without backends is one
	}
	for _, e := range entries {
		if e.Name() == "python" && i.version != "" {
			if err := i.addPythonBackend(folder); err != nil {
				return err
			}
			continue
		}
		if err := os.Symlink(filepath.Join(i.backends, e.Name()), filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// command is the server's command line.
func (s *Server) command() []string {
	i := s.installation
	isContained := i.Engine != ""
	repository, backends := s.repository, s.backendFolder()
	if isContained {
		repository, backends = containerRepository, imageBackends
	}
	out := []string{i.Program, "--model-repository=" + repository, "--backend-directory=" + backends,
		"--model-control-mode=explicit", "--exit-on-error=false", "--strict-readiness=false", "--log-verbose=0",
		"--allow-gpu-metrics=false", "--allow-cpu-metrics=false", "--exit-timeout-secs=" + strconv.Itoa(exitSeconds),
		"--backend-config=python,shm-region-prefix-name=" + s.name}
	if i.caches != "" && !isContained {
		out = append(out, "--cache-directory="+i.caches)
	}
	for n, name := range []string{"http", "grpc", "metrics"} {
		host, port, _ := net.SplitHostPort(s.addresses()[n])
		if isContained {
			host, port = "0.0.0.0", strings.Fields(containerPorts)[n] // only published on our loopback
		}
		out = append(out, "--"+name+"-address="+host, "--"+name+"-port="+port)
	}
	if s.options.Strict {
		out = append(out, "--disable-auto-complete-config")
	}
	out = append(out, s.options.Arguments...)
	if isContained {
		return s.wrap(out)
	}
	return out
}

func (s *Server) environment() []string {
	i := s.installation
	out := append(os.Environ(), s.options.Environment...)
	if i.python != "" {
		// The interpreter inside the Python backend takes its modules from there.
		out = append(out, "PATH="+i.python+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if len(i.library) > 0 {
		out = append(out, "LD_LIBRARY_PATH="+strings.Join(append(i.library, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...), ":"))
	}
	return out
}

// run starts the program.
func (s *Server) run(ctx context.Context) error {
	log, err := os.Create(s.logPath())
	if err != nil {
		return fault.New(fault.Missing, "make the server's log: %w", err)
	}
	defer log.Close()
	command := s.command()
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.Env = s.folder, log, log, s.environment()
	s.group = processgroup.New(s.cmd, guardPatience)
	if err := s.cmd.Start(); err != nil {
		s.group.End(0)
		s.cmd = nil
		return fault.New(fault.Program, "start %s: %w", s.installation, err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in its state
		close(s.ended)
	}()
	if s.installation.Engine == "" {
		if err := limitMemory(s.cmd.Process.Pid, s.options.memory()); err != nil && !s.hasEnded() {
			return fault.New(fault.Missing, "limit the server's memory: %w", err)
		}
	}
	context.AfterFunc(ctx, s.Stop)
	return nil
}

func (s *Server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// awaitLive waits until the server answers.
func (s *Server) awaitLive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orElse(s.options.StartPatience, startPatience))
	defer cancel()
	for {
		if s.isLive(ctx) {
			return nil
		}
		select {
		case <-s.ended:
			return fault.New(fault.Program, "%s did not start: it %s: %s", s.installation, howItEnded(s.cmd.ProcessState), s.lastWords())
		case <-ctx.Done():
			return fault.New(fault.Program, "%s did not answer within %s: %s", s.installation, orElse(s.options.StartPatience, startPatience), s.lastWords())
		case <-time.After(pollInterval):
		}
	}
}

func (s *Server) isLive(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTP+"/v2/health/live", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK
}

// Stop ends the server and takes away what it made. It may be called again.
func (s *Server) Stop() {
	s.stopped.Do(func() {
		if s.cmd != nil {
			s.end()
		}
		if s.rpc != nil {
			s.rpc.close()
		}
		removeShared(s.name)
		_ = os.RemoveAll(s.folder) // in the machine's folder for such things, where something cleans up
	})
}

func (s *Server) end() {
	if !s.hasEnded() {
		_ = askToEnd(s.cmd.Process) // it may just have ended
		select {
		case <-s.ended:
		case <-time.After(stopPatience):
		}
	}
	s.group.End(0)
	<-s.ended
	if s.installation.Engine != "" {
		s.removeContainer()
	}
}

func (s *Server) logPath() string { return filepath.Join(s.folder, "log") }

// logLimit bounds how much of a log is read at once.
const logLimit = 8 << 20

// Log gives what the server wrote, from an offset on.
func (s *Server) Log(offset int64) string {
	f, err := os.Open(s.logPath())
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.NewSectionReader(f, offset, logLimit))
	return string(text)
}

// logSize is where the log ends now.
func (s *Server) logSize() int64 {
	info, err := os.Stat(s.logPath())
	if err != nil {
		return 0
	}
	return info.Size()
}

// lastWords are the end of a server that did not start.
func (s *Server) lastWords() string {
	text := s.Log(max(0, s.logSize()-4096))
	if said := complaints(text); len(said) > 0 {
		return said[len(said)-1]
	}
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
