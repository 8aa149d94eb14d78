/* Receives or sends about 4 Mbit/s by UDP, and before that tries to leave its root: test_programs_root.py. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static FILE *report;
static int escapes = 0;

static void expect_refusal(const char *what, int result) {
    if (result >= 0) { fprintf(report, "escaped: %s\n", what); escapes++; }
}

static void try_to_write(const char *folder) {
    char path[600];
    snprintf(path, sizeof path, "%s/left-by-the-probe", folder);
    expect_refusal(path, open(path, O_CREAT | O_WRONLY, 0644));
}

/* Every folder that can be reached, but for those that are meant to be written to. */
static void walk(const char *folder, int depth) {
    const char *ours[] = {"/tmp", "/dev/shm", "/run/narrows", "/proc"};
    for (int i = 0; i < 4; i++) if (!strcmp(folder, ours[i])) return;
    try_to_write(folder[1] ? folder : "");
    expect_refusal("chmod", chmod(folder, 0777));
    DIR *open_folder = opendir(folder);
    struct dirent *entry;
    while (depth < 6 && open_folder && (entry = readdir(open_folder))) {
        char path[600];
        struct stat about;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", folder[1] ? folder : "", entry->d_name);
        if (lstat(path, &about)) continue;
        if (S_ISDIR(about.st_mode)) walk(path, depth + 1);
        if (S_ISREG(about.st_mode)) expect_refusal(path, open(path, O_WRONLY));
        if (S_ISREG(about.st_mode)) expect_refusal("unlink", unlink(path));
        if (S_ISBLK(about.st_mode)) expect_refusal("block device", 0);
    }
    if (open_folder) closedir(open_folder);
}

static void probe(const char *secret) {
    const char *host[] = {secret, "/etc/shadow", "/etc/passwd", "/root", "/home", "/work", "/boot", "/usr/bin/python3",
                          "/proc/1/root/etc/passwd", "/proc/1/environ", "/proc/kcore", "/sys/kernel", "/dev/tty",
                          "/run/systemd", "/proc/1/cwd", "/../etc/passwd", "/proc/self/cwd/../../../../etc/passwd"};
    for (unsigned i = 0; i < sizeof host / sizeof *host; i++)
        expect_refusal(host[i], open(host[i], O_RDONLY));
    const char *settings[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
                              "/proc/self/oom_score_adj", "/proc/sys/kernel/hostname"};
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++)
        expect_refusal(settings[i], open(settings[i], O_WRONLY));
    walk("/", 0);
    expect_refusal("mknod", mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0)));
    expect_refusal("mount", mount("tmpfs", "/tmp", "tmpfs", 0, ""));
    expect_refusal("remount", mount("", "/", "", MS_REMOUNT | MS_BIND, ""));
    expect_refusal("umount", umount("/proc"));
    expect_refusal("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
    expect_refusal("chroot", chroot("/tmp"));
    expect_refusal("setuid", getuid() ? setuid(0) : -1);
    expect_refusal("sethostname", sethostname("probe", 5));
    for (int fd = 3; fd < 200; fd++)
        if (fd != fileno(report)) expect_refusal("inherited descriptor", fcntl(fd, F_GETFD));
    /* What is meant to work. */
    int fine = open("/tmp/file", O_CREAT | O_RDWR, 0600) >= 0 && open("/dev/shm/file", O_CREAT | O_RDWR, 0600) >= 0;
    char byte;
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY), random = open("/dev/urandom", O_RDONLY);
    fine = fine && read(zero, &byte, 1) == 1 && write(null, "x", 1) == 1 && read(random, &byte, 1) == 1;
    fine = fine && getenv("HOME") && !strcmp(getenv("HOME"), "/tmp") && !getenv("NARROWS_SECRET");
    symlink("/etc/passwd", "/run/narrows/link");
    fprintf(report, "escapes: %d, works: %d, user: %d, pid: %d, image: %s\n", escapes, fine, (int)getuid(), (int)getpid(),
            getenv("IMAGE") ? getenv("IMAGE") : "none");
    fflush(report);
}

int main(int count, char **words) {
    int here = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET};
    static char data[1200];
    if (count > 1 && !strcmp(words[1], "--version")) { puts("probe 1.0, musl"); return 0; }
    if (count < 4) return 2;
    char path[600];
    snprintf(path, sizeof path, "%s/probe.txt", words[3]);
    close(here);
    report = fopen(path, "w");
    if (!report) { perror(path); return 1; }
    probe(count > 4 ? words[4] : "/no/secret");
    here = socket(AF_INET, SOCK_DGRAM, 0);
    at.sin_port = htons(atoi(words[2]));
    if (!strcmp(words[1], "listen")) {
        bind(here, (struct sockaddr *)&at, sizeof at);
        for (;;) recv(here, data, sizeof data, 0);
    }
    inet_aton(words[1], &at.sin_addr);
    for (;;) {
        struct timespec pause = {0, 2400000};
        sendto(here, data, sizeof data, 0, (struct sockaddr *)&at, sizeof at);
        nanosleep(&pause, NULL);
    }
}
