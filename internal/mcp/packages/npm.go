package packages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
)

// environment is that of npm: settings of registries and proxies, and none of what the server
// gets.
func (r Request) environment() []string {
	env := slices.DeleteFunc(slices.Clone(r.Start.Install), func(entry string) bool { return strings.HasPrefix(entry, "PATH=") })
	return append(env, "PATH="+r.Start.Path)
}

// errStalled is why npm is ended that makes no progress.
var errStalled = errors.New("npm has made no progress for too long")

// npm runs npm in the folder of the attempt until it ends or makes no progress.
func (a *attempt) npm(ctx context.Context, args ...string) error {
	program, err := findIn(a.request.Start.Path, "npm")
	if err != nil {
		return missing("npm")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = a.folder, a.request.environment()
	endWithUs(cmd)
	cmd.WaitDelay = 2 * time.Second // its folder is removed anyway
	said := &output{each: a.follow(ctx, cancel)}
	cmd.Stderr, cmd.Stdout = said, io.Discard
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // npm ends with the thread that has started it
		defer runtime.UnlockOSThread()
		done <- cmd.Run()
	}()
	if err = <-done; err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return fault.Wrap(fault.CodeOf(cause), cause, "install %s", a.request.Specs[0]).WithHint("last it was: %s", said.last())
	}
	return a.explain(err, said)
}

// follower follows what npm writes. It reports what is being done, and ends npm when there is
// nothing new for long.
type follower struct {
	*attempt
	stalled  *time.Timer
	known    map[string]bool // descriptions of packages that were fetched
	fetched  int             // packages
	reported time.Time
	about    string // the package whose warning is being read
}

// follow begins to follow npm. It ends with ctx.
func (a *attempt) follow(ctx context.Context, cancel context.CancelCauseFunc) func(line string) {
	f := &follower{attempt: a, known: map[string]bool{}}
	f.stalled = time.AfterFunc(a.store.options.Stalled, func() { cancel(errStalled) })
	context.AfterFunc(ctx, func() { f.stalled.Stop() })
	return f.line
}

// reportEvery is how often it is reported what npm does.
const reportEvery = time.Second / 2

func (f *follower) line(line string) {
	f.stalled.Reset(f.store.options.Stalled)
	if about, is := strings.CutPrefix(line, "npm warn EBADENGINE"); is {
		f.about = f.noteEngine(strings.TrimSpace(about), f.about)
	}
	address, is := fetchOf(line)
	switch {
	case !is:
		return
	case strings.HasSuffix(address, ".tgz"):
		f.fetched++
	default:
		f.known[address] = true
	}
	if time.Since(f.reported) < reportEvery {
		return
	}
	f.reported = time.Now()
	if f.fetched == 0 {
		f.report(fmt.Sprintf("resolving, %d packages so far", len(f.known)))
		return
	}
	f.report(fmt.Sprintf("downloading %d of %d packages", f.fetched, max(len(f.known), f.fetched)))
}

// fetchOf is the address of a line such as "npm http fetch GET 200 https://… 12ms".
func fetchOf(line string) (address string, is bool) {
	words := strings.Fields(line)
	if len(words) < 6 || words[0] != "npm" || words[1] != "http" || words[2] != "fetch" || words[4] != "200" {
		return "", false
	}
	return words[5], true
}

// noteEngine reads one line of npm's warning about the versions of node that a package wants.
func (a *attempt) noteEngine(line, name string) string {
	key, value, _ := strings.Cut(line, ":")
	value = strings.Trim(strings.TrimSpace(value), ",")
	switch key {
	case "package":
		return strings.Trim(value, "'")
	case "required":
		if at := strings.Index(value, "node: '"); at >= 0 {
			a.engines[name], _, _ = strings.Cut(value[at+len("node: '"):], "'")
		}
	}
	return name
}

// explain says why npm has failed, and what to do about it.
func (a *attempt) explain(err error, said *output) error {
	code, text := said.failure()
	spec := a.request.Specs[0]
	if text == "" {
		text = err.Error()
	}
	failed := fault.Wrap(fault.Unavailable, &npmError{code, redact.Text(text)}, "install %s", spec)
	try := "try it by hand: npm install --dry-run " + spec
	switch code {
	case "E404", "ETARGET", "ENOVERSIONS":
		if !strings.Contains(text, NameOf(spec)) {
			return failed.WithHint("the registry has no version of something that it depends on: try again later, or take another version of %s", NameOf(spec))
		}
		return failed.WithHint("the registry has no such package or version; look it up: npm view %s versions", NameOf(spec))
	case "E401", "E403", "ENEEDAUTH":
		return failed.WithHint("the registry refuses it: log in with npm login, or check the token in .npmrc; %s", try)
	case "ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH", "ERR_SOCKET_TIMEOUT", "FETCH_ERROR", "EIDLETIMEOUT":
		return failed.WithHint("npm cannot reach the registry: check the network, the proxy and npm config get registry; %s", try)
	case "ENOSPC":
		return failed.WithHint("the disk is full: luanette upstream prune removes packages that are not used")
	case "EINTEGRITY":
		return failed.WithHint("a package is not what its checksum says: npm cache verify, then try again; if it stays, somebody has changed it")
	case "EBADENGINE":
		return failed.WithHint("it needs another version of node than %s", a.node.Version)
	}
	return failed.WithHint("%s; install = \"off\" runs npx itself", try)
}

// npmError is why npm has failed.
type npmError struct{ code, text string }

func (e *npmError) Error() string { return e.text }

// MayWorkByNPX reports whether npx may be able to run what could not be installed: nothing says
// that the package or the registry is to blame.
func MayWorkByNPX(err error) bool {
	var failed *npmError
	return errors.As(err, &failed) && !strings.HasPrefix(failed.code, "E")
}

// output is what a program writes: its lines are passed on, and the last ones kept.
type output struct {
	each func(line string)

	mu    sync.Mutex
	part  []byte
	lines []string
}

// maxOutput is how many lines are kept.
const maxOutput = 60

// Write takes a part of the output.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	scan := bufio.NewReader(bytes.NewReader(append(o.part, data...)))
	for {
		line, err := scan.ReadString('\n')
		if err != nil {
			o.part = []byte(line)
			return len(data), nil // the rest of the line follows
		}
		line = strings.TrimSpace(line)
		if o.each != nil {
			o.each(line)
		}
		if line == "" || strings.HasPrefix(line, "npm http") {
			continue
		}
		if o.lines = append(o.lines, line); len(o.lines) > maxOutput {
			o.lines = o.lines[1:]
		}
	}
}

// last is the last line.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 0 {
		return "silent"
	}
	return redact.Text(o.lines[len(o.lines)-1])
}

// maxReasons is how many lines of npm's reason are shown.
const maxReasons = 4

// failure is the code of npm's error, and its first lines.
func (o *output) failure() (code, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var reasons []string
	for _, line := range o.lines {
		reason, is := strings.CutPrefix(line, "npm error ")
		if !is {
			continue
		}
		if found, is := strings.CutPrefix(reason, "code "); is {
			code = found
		} else if !strings.HasPrefix(reason, "A complete log") && len(reasons) < maxReasons {
			reasons = append(reasons, reason)
		}
	}
	text = strings.Join(reasons, " / ")
	if code != "" && !strings.Contains(text, code) {
		text = code + ": " + text
	}
	return code, text
}
