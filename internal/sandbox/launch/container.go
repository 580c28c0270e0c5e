package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// container prepares a program to be started in a container, by the command of its engine.
// Docker's service and podman enforce what the arguments say.
func (l *Launcher) container(p profile.Profile, program Program) (*Command, error) {
	engine, image, _ := p.Level.Container()
	if len(p.Credentials) > 0 {
		return nil, fault.New(fault.Unavailable, "the container of %s cannot use secrets with hosts: the proxy that holds them is not reachable from it", p.Name).
			WithHint("use sandbox = \"strict\" or \"open\", or a secret without hosts")
	}
	path, err := exec.LookPath(engine)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the container of %s", p.Name).WithHint("install %s, or use sandbox = \"open\" or \"strict\", which need nothing", engine)
	}
	private, err := l.privateFolders(p.Name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, containerArgs(p, program, image, private)...)
	cmd.Env, cmd.Dir = program.Env, program.Dir // variables are passed by name, so that no value is on the command line
	return &Command{Cmd: cmd, name: p.Name}, nil
}

// containerArgs are the arguments of `docker run`. The program is named as in the image,
// not as it was found here.
func containerArgs(p profile.Profile, program Program, image string, private folders) []string {
	args := []string{
		"run", "--rm", "--interactive", "--init", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
		"--user=" + strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid()),
		"--tmpfs=/tmp", "--volume=" + private.home + ":/home/sandbox", "--env=HOME=/home/sandbox",
	}
	if len(p.Network) == 0 {
		args = append(args, "--network=none")
	}
	args = append(args, "--pids-limit="+strconv.Itoa(orDefault(p.Limits.Processes, 512)), "--ulimit=nofile="+strconv.Itoa(orDefault(p.Limits.Files, 4096)))
	if p.Limits.Memory > 0 {
		args = append(args, "--memory="+strconv.FormatInt(p.Limits.Memory, 10))
	}
	if p.Limits.CPU > 0 {
		args = append(args, "--cpus="+strconv.FormatFloat(p.Limits.CPU, 'f', -1, 64))
	}
	for _, folder := range p.Read {
		args = append(args, "--volume="+folder+":"+folder+":ro")
	}
	for _, folder := range p.Write {
		args = append(args, "--volume="+folder+":"+folder)
	}
	if program.Dir != "" {
		args = append(args, "--workdir="+program.Dir)
	}
	for _, entry := range program.Env {
		if name, _, _ := strings.Cut(entry, "="); passed(name) {
			args = append(args, "--env="+name)
		}
	}
	return append(append(args, image, filepath.ToSlash(program.Args[0])), program.Args[1:]...)
}

// passed reports whether a variable means the same inside a container.
func passed(name string) bool {
	switch name {
	case "PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "PWD":
		return false
	}
	return !strings.HasPrefix(name, "XDG_")
}

func orDefault(value, standard int) int {
	if value > 0 {
		return value
	}
	return standard
}
