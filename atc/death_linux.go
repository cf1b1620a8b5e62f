package atc

import "syscall"

// endWithParent has the kernel end a program when the thread that started it goes: a
// killed npuctl leaves no ATC behind. The thread must be held meanwhile, see [Run.Do].
func endWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGTERM
}
