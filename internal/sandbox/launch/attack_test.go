//go:build linux

package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is what the hostile program attacks: things of the one who starts it.
type target struct {
	Folder   string // with secret, victim, victim2, tool and unix.sock
	Hidden   string // a folder of credentials
	Pid      int
	Port     int // a TCP listener of the computer
	Abstract string
	Memory   int    // key of SysV shared memory
	Own      string // a folder that the profile lets it write
	Given    string // a folder that the profile lets it read
}

// attempt is one way out. It returns nil if it succeeds.
type attempt struct {
	name string
	try  func(target) error
}

// outcome of all attempts, by name: "" if it succeeded, otherwise why not.
type outcome map[string]string

// attack makes all attempts and prints the outcome.
func attack() int {
	var t target
	if err := json.Unmarshal([]byte(os.Getenv("TARGET")), &t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	all := outcome{}
	for _, a := range slices.Concat(fileAttempts(), programAttempts(), processAttempts(), networkAttempts(), kernelAttempts()) {
		if err := a.try(t); err != nil {
			all[a.name] = err.Error()
		} else {
			all[a.name] = ""
		}
	}
	return printJSON(all)
}

func printJSON(value any) int {
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		return 1
	}
	return 0
}

func fileAttempts() []attempt {
	return []attempt{
		{"read a file outside", func(t target) error { return readOne(t.Folder + "/secret") }},
		{"read a credential", func(t target) error { return readOne(t.Hidden + "/key") }},
		{"list the credentials", func(t target) error { _, err := os.ReadDir(t.Hidden); return err }},
		{"stat a file outside", func(t target) error { _, err := os.Stat(t.Folder + "/secret"); return err }},
		{"list a folder outside", func(t target) error { _, err := os.ReadDir(t.Folder); return err }},
		{"create a file outside", func(t target) error { return appendTo(t.Folder + "/new") }},
		{"write to /etc", func(target) error { return appendTo("/etc/sandbox-attack") }},
		{"write to a folder that is only readable", func(t target) error { return appendTo(t.Given + "/new") }},
		{"read through a symbolic link", func(t target) error {
			return errors.Join(os.Symlink(t.Folder+"/secret", t.Own+"/link"), readOne(t.Own+"/link"))
		}},
		{"read through a hard link", func(t target) error {
			return errors.Join(os.Link(t.Folder+"/secret", t.Own+"/hard"), readOne(t.Own+"/hard"))
		}},
		{"rename a file outwards", func(t target) error {
			return errors.Join(os.WriteFile(t.Own+"/mine", nil, 0o600), os.Rename(t.Own+"/mine", t.Folder+"/mine"))
		}},
		{"rename a file inwards", func(t target) error { return os.Rename(t.Folder+"/secret", t.Own+"/stolen") }},
		{"truncate a file outside", func(t target) error { return os.Truncate(t.Folder+"/victim", 0) }},
		{"chmod a file outside", func(t target) error { return os.Chmod(t.Folder+"/victim", 0o600) }},
		{"unlink a file outside", func(t target) error { return os.Remove(t.Folder + "/victim2") }},
		{"make a folder outside", func(t target) error { return os.Mkdir(t.Folder+"/folder", 0o700) }},
		{"leave by ..", func(t target) error { return readOne(t.Own + "/../../../../../../../../.." + t.Folder + "/secret") }},
		{"write a setting of the kernel", func(target) error { return appendTo("/proc/sys/kernel/core_pattern") }},
		{"open a device of the computer", func(target) error {
			for _, device := range []string{"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda"} {
				if readOne(device) == nil {
					return nil
				}
			}
			return errors.New("none")
		}},
		{"make a device", func(t target) error { return unix.Mknod(t.Own+"/mem", unix.S_IFCHR|0o600, 0x101) }},
	}
}

func programAttempts() []attempt {
	self, _ := os.Executable()
	image, _ := os.ReadFile(self)
	return []attempt{
		{"execute a program outside", func(t target) error { return harmless(t.Folder + "/tool") }},
		{"execute a dropped file", func(t target) error {
			return errors.Join(os.WriteFile(t.Own+"/dropped", image, 0o700), harmless(t.Own+"/dropped"))
		}},
		{"execute a dropped file of /tmp", func(target) error {
			return errors.Join(os.WriteFile(os.TempDir()+"/dropped", image, 0o700), harmless(os.TempDir()+"/dropped"))
		}},
		{"execute from memory", func(target) error {
			fd, err := unix.MemfdCreate("x", 0)
			if err != nil {
				return err
			}
			file := os.NewFile(uintptr(fd), "memory")
			defer file.Close()
			_, err = file.Write(image)
			return errors.Join(err, harmless(fmt.Sprintf("/proc/self/fd/%d", fd)))
		}},
		{"map a dropped file as code", func(t target) error {
			file, err := os.Open(t.Own + "/dropped")
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
			return err
		}},
		{"gain rights by a setuid program", func(target) error {
			status, err := os.ReadFile("/proc/thread-self/status")
			if err != nil || bytes.Contains(status, []byte("NoNewPrivs:\t1")) {
				return errors.New("no new privileges")
			}
			return nil
		}},
		{"keep a capability", func(target) error {
			status, err := os.ReadFile("/proc/thread-self/status")
			if err != nil || bytes.Contains(status, []byte("CapPrm:\t0000000000000000\nCapEff:\t0000000000000000")) && bytes.Contains(status, []byte("CapAmb:\t0000000000000000")) {
				return errors.New("none")
			}
			return nil
		}},
		{"use an inherited descriptor", func(target) error {
			for fd := 3; fd < 64; fd++ {
				name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
				if err == nil && !strings.Contains(name, "anon_inode") && !strings.HasPrefix(name, "/proc/") && !strings.HasPrefix(name, "/sys/fs/cgroup") {
					return nil
				}
			}
			return errors.New("none")
		}},
	}
}

func processAttempts() []attempt {
	return []attempt{
		{"read the starter's environment", func(t target) error { return readOne(t.proc("environ")) }},
		{"read the starter's memory", func(t target) error { return readOne(t.proc("mem")) }},
		{"read the starter's maps", func(t target) error { return readOne(t.proc("maps")) }},
		{"read through the starter's root", func(t target) error { return readOne(t.proc("root") + t.Folder + "/secret") }},
		{"read through the starter's folder", func(t target) error { return readOne(t.proc("cwd") + "/command.go") }},
		{"use the starter's descriptors", func(t target) error { _, err := os.Readlink(t.proc("fd/0")); return err }},
		{"signal the starter", func(t target) error { return unix.Kill(t.Pid, 0) }},
		{"look into the first process", func(target) error {
			return readOne(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		}},
		{"trace the starter", func(t target) error { return unix.PtraceAttach(t.Pid) }},
		{"read by process_vm_readv", func(t target) error {
			b := make([]byte, 1)
			_, err := unix.ProcessVMReadv(t.Pid, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
			return err
		}},
		{"take a descriptor by pidfd", func(t target) error {
			fd, err := unix.PidfdOpen(t.Pid, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(fd, 0, 0)
			return err
		}},
		{"see processes of the computer", func(target) error {
			processes, _ := filepath.Glob("/proc/[1-9]*")
			if len(processes) > 4 {
				return nil
			}
			return fmt.Errorf("%d processes", len(processes))
		}},
		{"attach shared memory", func(t target) error { _, err := unix.SysvShmGet(t.Memory, 0, 0); return err }},
		{"open 5000 files", func(target) error {
			files := []*os.File{}
			defer func() {
				for _, f := range files {
					f.Close()
				}
			}()
			for range 5000 {
				f, err := os.Open("/dev/null")
				if err != nil {
					return err
				}
				files = append(files, f)
			}
			return nil
		}},
		{"write a core file", func(target) error {
			var limit unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit.Max == 0 {
				return errors.New("not allowed")
			}
			return nil
		}},
	}
}

func networkAttempts() []attempt {
	return []attempt{
		{"connect to the computer", func(t target) error { return connect(0, [4]byte{127, 0, 0, 1}, t.Port) }},
		{"connect by MPTCP", func(t target) error { return connect(unix.IPPROTO_MPTCP, [4]byte{127, 0, 0, 1}, t.Port) }},
		{"send a datagram", func(t target) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"open a packet socket", func(target) error { return openSocket(unix.AF_PACKET, unix.SOCK_RAW, 0x300) }},
		{"open a raw socket", func(target) error { return openSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		{"open a vsock", func(target) error { return openSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
		{"open a socket of the kernel's crypto", func(target) error { return openSocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
		{"open netfilter's netlink", func(target) error { return openSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) }},
		{"connect to a Unix socket", func(t target) error { return dial("unix", t.Folder+"/unix.sock") }},
		{"connect to a hidden Unix socket", func(t target) error { return dial("unix", t.Hidden+"/agent.sock") }},
		{"connect to an abstract socket", func(t target) error { return dial("unix", "@"+t.Abstract) }},
		{"listen for the network", func(target) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Bind(fd, &unix.SockaddrInet4{})
		}},
	}
}

func kernelAttempts() []attempt {
	call := func(number uintptr, args ...uintptr) error {
		args = append(args, make([]uintptr, 6-len(args))...)
		if _, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
			return errno
		}
		return nil
	}
	var zeros [128]byte
	buffer := uintptr(unsafe.Pointer(&zeros[0]))
	return []attempt{
		{"make a user namespace", func(target) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{"clone into a user namespace", func(target) error { return call(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)) }},
		{"clone3", func(target) error { return call(unix.SYS_CLONE3, buffer, 88) }},
		{"mount", func(t target) error { return unix.Mount("x", t.Own, "tmpfs", 0, "") }},
		{"mount by the new calls", func(target) error { _, err := unix.Fsopen("tmpfs", 0); return err }},
		{"unmount", func(target) error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
		{"chroot", func(t target) error { return unix.Chroot(t.Own) }},
		{"enter the starter's namespace", func(t target) error {
			fd, err := unix.Open(t.proc("ns/mnt"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Setns(fd, 0)
		}},
		{"use io_uring", func(target) error { return call(unix.SYS_IO_URING_SETUP, 4, buffer) }},
		{"use bpf", func(target) error { return call(unix.SYS_BPF, 0, buffer, 48) }},
		{"use userfaultfd", func(target) error { return call(unix.SYS_USERFAULTFD, 1) }},
		{"measure the computer", func(target) error {
			_, err := unix.PerfEventOpen(&unix.PerfEventAttr{Size: 112}, 0, -1, -1, 0)
			return err
		}},
		{"read the user's keyring", func(target) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false); return err }},
		{"type into the terminal", func(target) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, buffer) }},
		{"open by a file handle", func(target) error { return call(unix.SYS_OPEN_BY_HANDLE_AT, 0, buffer, 0) }},
		{"load a module", func(target) error { return call(unix.SYS_INIT_MODULE, buffer, 0, buffer) }},
		{"read the kernel's log", func(target) error { return call(unix.SYS_SYSLOG, 3, buffer, 128) }},
	}
}

func (t target) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", t.Pid, name) }

func readOne(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

// harmless runs a copy of the test program, which ends at once.
func harmless(program string) error {
	cmd := exec.Command(program)
	cmd.Env = []string{roleVariable + "=harmless"}
	return cmd.Run()
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		c.Close()
	}
	return err
}

func openSocket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func connect(protocol int, host [4]byte, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: host})
}
