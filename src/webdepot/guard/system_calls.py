"""System calls of a parser, with their numbers on each architecture, for the filter in `walls`.

All others are refused, also those of future kernels. The numbers are from the kernel's `asm/unistd_64.h`
(x86_64) and `asm-generic/unistd.h` (aarch64).
"""

from typing import NamedTuple


class Architecture(NamedTuple):
    audit: int
    """The architecture in seccomp's data."""
    capset: int
    calls: dict[str, int]


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (each.split("=") for each in text.split())}


ARCHITECTURES = {
    "x86_64": Architecture(
        audit=0xC000003E,
        capset=126,
        calls=_numbers("""
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11
    brk=12 rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17 pwrite64=18 readv=19
    writev=20 access=21 pipe=22 select=23 sched_yield=24 mremap=25 msync=26 mincore=27 madvise=28 dup=32
    dup2=33 nanosleep=35 getitimer=36 setitimer=38 getpid=39 sendto=44 recvfrom=45 sendmsg=46 recvmsg=47
    shutdown=48 getsockname=51 getsockopt=55 clone=56 exit=60 uname=63 fcntl=72 flock=73 fsync=74
    fdatasync=75 ftruncate=77 getdents=78 getcwd=79 rename=82 mkdir=83 rmdir=84 unlink=87 symlink=88
    readlink=89 umask=95 gettimeofday=96 getrlimit=97 getrusage=98 sysinfo=99 times=100 getuid=102
    getgid=104 geteuid=107 getegid=108 getppid=110 getpgrp=111 getgroups=115 getresuid=118 getresgid=120
    rt_sigpending=127 rt_sigtimedwait=128 rt_sigsuspend=130 sigaltstack=131 statfs=137 fstatfs=138
    getpriority=140 sched_getparam=143 sched_getscheduler=145 prctl=157 arch_prctl=158 setrlimit=160
    gettid=186 futex=202 sched_getaffinity=204 getdents64=217 set_tid_address=218 restart_syscall=219
    fadvise64=221 timer_create=222 timer_settime=223 timer_delete=226 clock_gettime=228 clock_getres=229
    clock_nanosleep=230 exit_group=231 epoll_wait=232 epoll_ctl=233 tgkill=234 openat=257 mkdirat=258
    newfstatat=262 unlinkat=263 renameat=264 symlinkat=266 readlinkat=267 faccessat=269 pselect6=270
    ppoll=271 set_robust_list=273 epoll_pwait=281 fallocate=285 eventfd2=290 epoll_create1=291 dup3=292
    pipe2=293 preadv=295 pwritev=296 prlimit64=302 renameat2=316 getrandom=318 memfd_create=319
    membarrier=324 preadv2=327 statx=332 rseq=334 clone3=435 close_range=436 faccessat2=439
"""),
    ),
    "aarch64": Architecture(
        audit=0xC00000B7,
        capset=91,
        calls=_numbers("""
    getcwd=17 eventfd2=19 epoll_create1=20 epoll_ctl=21 epoll_pwait=22 dup=23 dup3=24 fcntl=25 ioctl=29
    flock=32 mkdirat=34 unlinkat=35 symlinkat=36 renameat=38 statfs=43 fstatfs=44 ftruncate=46
    fallocate=47 faccessat=48 openat=56 close=57 pipe2=59 getdents64=61 lseek=62 read=63 write=64
    readv=65 writev=66 pread64=67 pwrite64=68 preadv=69 pwritev=70 pselect6=72 ppoll=73 readlinkat=78
    newfstatat=79 fstat=80 fsync=82 fdatasync=83 exit=93 exit_group=94 set_tid_address=96 futex=98
    set_robust_list=99 nanosleep=101 getitimer=102 setitimer=103 timer_create=107 timer_settime=110
    timer_delete=111 clock_gettime=113 clock_getres=114 clock_nanosleep=115 sched_getscheduler=120
    sched_getparam=121 sched_getaffinity=123 sched_yield=124 restart_syscall=128 tgkill=131
    sigaltstack=132 rt_sigsuspend=133 rt_sigaction=134 rt_sigprocmask=135 rt_sigpending=136
    rt_sigtimedwait=137 rt_sigreturn=139 getpriority=141 getresuid=148 getresgid=150 times=153
    getgroups=158 uname=160 getrlimit=163 setrlimit=164 getrusage=165 umask=166 prctl=167
    gettimeofday=169 getpid=172 getppid=173 getuid=174 geteuid=175 getgid=176 getegid=177 gettid=178
    sysinfo=179 getsockname=204 sendto=206 recvfrom=207 getsockopt=209 shutdown=210 sendmsg=211
    recvmsg=212 brk=214 munmap=215 mremap=216 clone=220 mmap=222 fadvise64=223 mprotect=226 msync=227
    mincore=232 madvise=233 prlimit64=261 renameat2=276 getrandom=278 memfd_create=279 membarrier=283
    preadv2=286 statx=291 rseq=293 clone3=435 close_range=436 faccessat2=439
"""),
    ),
}
