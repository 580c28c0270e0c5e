package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/ui/contents"
)

// tempFolder is where scripts have their own folders, whose files they may upload.
func (srv *Server) tempFolder() string { return filepath.Join(srv.contents.data, "temp") }

// openHoot makes the music backend, unless it is not wanted. Its tools are offered
// unless an upstream has their namespace.
func (srv *Server) openHoot(ctx context.Context) error {
	if !srv.config.Hoot.Enabled {
		return nil
	}
	backend, err := srv.musicBackend(ctx)
	if err != nil {
		return err
	}
	srv.hoot = backend
	if srv.musicElsewhere() {
		srv.log.InfoContext(ctx, "music tools come from an upstream", "upstream", hootenanny.Space)
	}
	srv.catalog.Add(&nearMusic{backend.Tools(), srv.musicElsewhere})
	return nil
}

// exposeMusic shows those of the music tools that are wanted, unless they are an
// upstream's.
func (srv *Server) exposeMusic(now *config.Config) {
	if srv.hoot != nil && !srv.musicElsewhere() {
		names := now.Hoot.Expose
		srv.catalog.Expose(hootenanny.Space, catalog.Exposure{All: slices.Contains(names, "all") || slices.Contains(names, config.ExposeAll), Names: names})
	}
}

// musicElsewhere tells whether an upstream has the namespace of the music tools.
func (srv *Server) musicElsewhere() bool {
	if _, configured := srv.now().Upstreams[hootenanny.Space]; configured {
		return true
	}
	if srv.upstreams == nil {
		return false
	}
	_, added := srv.upstreams.manager.Status(hootenanny.Space)
	return added
}

// limits is how much of a namespace may be called at once: as much as one likes of
// what is in this process.
func (srv *Server) limits(namespace string) catalog.Limits {
	if namespace == hootenanny.Space && !srv.musicElsewhere() {
		return catalog.Limits{Concurrent: -1, Failures: -1}
	}
	u := srv.now().Upstreams[namespace]
	return catalog.Limits{Concurrent: u.Concurrent, Rate: u.Rate}
}

// musicBackend makes the music backend over what the house keeps.
func (srv *Server) musicBackend(ctx context.Context) (*hootenanny.Backend, error) {
	s := srv.config.Hoot.Services
	return hootenanny.Open(ctx, srv.store, hootenanny.Options{
		Store: shelf{srv.contents}, Events: srv.bus, Log: srv.log, Propagator: telemetry.Propagator(), URL: srv.address,
		Folders: slices.Concat([]string{srv.tempFolder(), filepath.Join(srv.contents.data, "jobs")}, full(srv.config.Scripts.Write), full(srv.config.Scripts.Read)),
		Services: hootenanny.Services{
			Orpheus: s.Orpheus, OrpheusClassifier: s.Classifier, OrpheusBridge: s.Bridge, OrpheusLoops: s.Loops,
			MusicGen: s.MusicGen, CLAP: s.CLAP, YuE: s.YuE, BeatThis: s.BeatThis,
		},
	})
}

func full(folders []string) (absolute []string) {
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil {
			absolute = append(absolute, abs)
		}
	}
	return absolute
}

// address is where our HTTP server is; "" when there is none.
func (srv *Server) address() string {
	if srv.config.Hoot.URL != "" {
		return strings.TrimRight(srv.config.Hoot.URL, "/")
	}
	base, _ := srv.listening.Load().(string)
	return base
}

// baseOf is how an address that listens is reached from here.
func baseOf(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// files makes the door to contents.
func (srv *Server) files() *contents.Server {
	return contents.New(musicians{srv}, contents.Options{
		Browsers: netguard.Browsers{Origins: srv.config.MCP.AllowedOrigins}, MaxUpload: int64(srv.config.Hoot.UploadMB) << 20,
	})
}

// store is the store of artifacts as the music backend sees it.
type shelf struct{ kept contentStore }

func (s shelf) PutContent(ctx context.Context, r io.Reader, mime string) (hootenanny.Content, error) {
	c, err := s.kept.Put(ctx, r, mime)
	return hootenanny.Content(c), err
}

func (s shelf) Find(ctx context.Context, name string) (hootenanny.Content, error) {
	c, err := s.kept.Find(ctx, name)
	return hootenanny.Content(c), err
}

func (s shelf) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return s.kept.Open(ctx, ref)
}

func (s shelf) Stats(ctx context.Context) (hootenanny.Stats, error) {
	items, bytes, err := s.kept.store.Stats(ctx)
	return hootenanny.Stats{Items: items, Bytes: bytes, Folder: s.kept.Folder()}, err
}

func (s shelf) Put(ctx context.Context, r io.Reader, d hootenanny.Details) (hootenanny.Artifact, error) {
	a, _, err := s.kept.store.Put(ctx, r, artifact.Details(d))
	return musicArtifact(a), err
}

func (s shelf) Get(ctx context.Context, id string) (hootenanny.Artifact, error) {
	ref, err := s.kept.store.Resolve(ctx, id)
	if err != nil {
		return hootenanny.Artifact{}, err
	}
	a, err := s.kept.store.Get(ctx, ref)
	return musicArtifact(a), err
}

func (s shelf) Search(ctx context.Context, q hootenanny.Search) (hootenanny.Page, error) {
	found, err := s.kept.store.Search(ctx, artifact.Query{
		Tags: q.Tags, Creator: q.Creator, Parent: q.Parent, Name: q.Name, Vibe: q.Vibe, Limit: q.Limit, Cursor: q.Cursor,
	})
	page := hootenanny.Page{Total: found.Total, Next: found.Next}
	for _, a := range found.Artifacts {
		page.Artifacts = append(page.Artifacts, musicArtifact(a))
	}
	return page, err
}

func (s shelf) Annotate(ctx context.Context, ref cas.Ref, n hootenanny.Annotation) (hootenanny.Artifact, error) {
	a, err := s.kept.store.Annotate(ctx, ref, artifact.Annotation(n))
	return musicArtifact(a), err
}

func musicArtifact(a artifact.Artifact) hootenanny.Artifact {
	m := hootenanny.Artifact{
		ID: artifact.ID(a.Hash), Hash: a.Hash, Size: a.Size, MIME: a.MIME, Tags: a.Tags, Creator: a.Creator, Parent: a.Parent,
		Name: a.Name, Description: a.Description, Created: a.CreatedAt,
	}
	for _, n := range a.Annotations {
		m.Annotations = append(m.Annotations, hootenanny.Annotation(n))
	}
	return m
}

// musicJob begins the hash of a job that is no script but work of the music
// backend. No stored script has such a hash.
const musicJob = "hootenanny:"

// isMusic tells jobs of the music backend, which take no turn among scripts: a
// script that waits for one would keep it from beginning.
func isMusic(s job.Spec) bool { return strings.HasPrefix(s.Hash, musicJob) }

// musicJobs is the queue as the music backend sees it.
type musicJobs struct{ queue *job.Queue }

func (m musicJobs) Submit(ctx context.Context, s hootenanny.JobSpec) (hootenanny.Job, error) {
	j, err := m.queue.Submit(ctx, job.Spec{
		Name: s.Tool, Hash: musicJob + s.Tool, Source: "-- " + musicJob + s.Tool, Params: s.Params, Creator: s.Creator,
		Tags: append([]string{hootenanny.Space}, s.Tags...),
	})
	return jobOfMusic(j), err
}

func (m musicJobs) Status(ctx context.Context, id string) (hootenanny.Job, error) {
	j, err := m.queue.Status(ctx, id)
	return jobOfMusic(j), err
}

func (m musicJobs) Poll(ctx context.Context, ids []string, timeout time.Duration, all bool) (done []hootenanny.Job, pending []string, err error) {
	over, pending, err := m.queue.Poll(ctx, ids, timeout, all)
	for _, j := range over {
		done = append(done, jobOfMusic(j))
	}
	return done, pending, err
}

func (m musicJobs) Cancel(ctx context.Context, id string) (bool, error) {
	return m.queue.Cancel(ctx, id)
}

func (m musicJobs) List(ctx context.Context, state string, limit int) (jobs []hootenanny.Job, total int, err error) {
	page, err := m.queue.List(ctx, job.Filter{State: job.State(state), Tag: hootenanny.Space}, limit, "")
	for _, j := range page.Jobs {
		jobs = append(jobs, jobOfMusic(j))
	}
	return jobs, page.Total, err
}

func (m musicJobs) Active() int { return len(m.queue.Active()) }

func jobOfMusic(j job.Job) hootenanny.Job {
	m := hootenanny.Job{
		ID: j.ID, Tool: j.Name, State: string(j.State), Creator: j.Creator, Created: j.Created, Started: j.Started, Finished: j.Finished,
		Progress: j.Progress, Message: j.Message, Result: j.Result,
		Tags: slices.DeleteFunc(slices.Clone(j.Tags), func(tag string) bool { return tag == hootenanny.Space }),
	}
	if j.Error != nil {
		m.Error = &fault.Error{Code: j.Error.Code, Msg: j.Error.Message, Hint: j.Error.Hint, Details: j.Error.Details}
	}
	return m
}

// runMusic does a job of the music backend. What it asks of models passes the
// job's door, so that it is asked once.
func runMusic(ctx context.Context, backend *hootenanny.Backend, task job.Task) (job.Outcome, error) {
	if backend == nil {
		return job.Outcome{}, fault.New(fault.Unavailable, "the music backend is switched off").WithHint("set hoot.enabled, and begin the job again")
	}
	env := host.NewEnv(nil, task.Door, &host.Services{})
	result, err := backend.RunJob(ctx, hootenanny.Task{
		ID: task.ID, Tool: strings.TrimPrefix(task.Hash, musicJob), Params: task.Params, Progress: task.Progress,
		Step: func(ctx context.Context, name string, do func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
			step := host.Func{Name: name, Kind: host.Idempotent, Effect: func(ctx context.Context, _ *host.Services, _ host.Args) ([]host.Value, error) {
				out, err := do(ctx)
				return []host.Value{out}, err
			}}
			values, err := env.Call(ctx, "model", &step, nil)
			if err != nil {
				return nil, err
			}
			if len(values) == 1 {
				if out, ok := values[0].(json.RawMessage); ok {
					return out, nil
				}
			}
			return nil, fault.New(fault.Internal, "the journal of job %s has no answer of %s", task.ID, name)
		},
	})
	return job.Outcome{Result: result}, err
}

// makeTempFolder makes the folder scripts have theirs in.
func (srv *Server) makeTempFolder() error {
	if err := os.MkdirAll(srv.tempFolder(), 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make temp folder")
	}
	return nil
}
