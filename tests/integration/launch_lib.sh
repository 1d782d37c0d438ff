# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2016,SC2317,SC2034,SC2015
# What the tests of launchers share: engines of their own, in $work, that end with the
# test. Source it after cli_lib.sh.

# Not root, or the kernel refuses: the test is skipped, by a named reason.
skip() {
    echo "SKIP $*"
    exit 77
}

launch_pids=()
launch_ns=()
launch_links=()

# is_gone PID: it has ended, or is a zombie.
is_gone() {
    [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

# end_pid PID: asks, waits, insists.
end_pid() {
    kill "$1" 2>/dev/null || return 0
    wait_for is_gone "$1" >/dev/null || kill -9 "$1" 2>/dev/null
}

launch_end() {
    local pid ns
    for pid in "${launch_pids[@]}"; do
        end_pid "$pid"
    done
    for ns in "${launch_ns[@]}"; do
        for pid in $(ip netns pids "$ns" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null
        done
        ip netns delete "$ns" 2>/dev/null
        rm -rf "/etc/netns/$ns"
    done
    for ns in "${launch_links[@]}"; do
        ip link delete "$ns" 2>/dev/null
    done
    cli_end
}
trap launch_end EXIT

# need PROGRAM PACKAGE: engines are installed by scripts/deps.
need() {
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ||
        skip "$1 is not installed; scripts/deps installs $2"
}

# marks_of TEXT: processes that have it in their command line, one a line.
marks_of() {
    local file pid
    { grep -als -- "$1" /proc/[0-9]*/cmdline || :; } | while read -r file; do
        pid=${file#/proc/}
        pid=${pid%/cmdline}
        if [ "$pid" != "$BASHPID" ] && ! is_gone "$pid"; then
            echo "$pid"
        fi
    done
}

# none_left TEXT
none_left() {
    [ -z "$(marks_of "$1")" ]
}

# have_marks N TEXT: that many of its workers run.
have_marks() {
    [ "$(marks_of "$2" | wc -l)" -ge "$1" ]
}

# models_like_local MODEL ARGS...: psd-lr by that launcher gives the bits of local
# workers. The training data is small.
lr_data() {
    local data
    data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
    gzip -dc "$data/agaricus.train.libsvm.gz" | head -400 >"$work/train"
    expect 0 run --endpoint tcp://127.0.0.1:1 --servers 1 --psd "$PSD_PROGRAM" -n 4 -- \
        "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 --save "$work/local.txt"
    [ -s "$work/local.txt" ] || fail "local workers saved no model"
}
lr_as_local() {
    PSCLI_ENDPOINT=tcp://127.0.0.1:1 expect 0 run --psd "$PSD_PROGRAM" -n 4 "$@" -- \
        "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 --save "$work/other.txt"
    cmp -s "$work/local.txt" "$work/other.txt" || fail "$*: the model has other bits"
    rm -f "$work/other.txt"
}

# Two hosts on a bridge, each with a network, mounts and a name of its own, and sshd:
# hosts_start; $net.1 is this host, $net.2 and $net.3 are they; $ssh_f is ssh's file.
hosts_start() {
    local k n=2 tag=$(($$ % 100000)) ns
    need sshd openssh-server
    need ssh openssh-client
    need ip iproute2
    PATH=$PATH:/usr/sbin:/sbin
    net=10.$((64 + RANDOM % 60)).$((RANDOM % 250))
    ip link add "pl$tag" type bridge 2>/dev/null || skip "the kernel makes no bridge"
    launch_links+=("pl$tag")
    ip addr add "$net.1/24" dev "pl$tag" && ip link set "pl$tag" up
    mkdir -p "$work/ssh" "$work/tmp"
    ssh_f=$work/ssh/config
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/id"
    cp "$work/ssh/id.pub" "$work/ssh/authorized_keys"
    cat >"$ssh_f" <<CONF
Host alias-a
    HostName $net.2
Host $net.* alias-a
    Port 22
    User root
    IdentityFile $work/ssh/id
    IdentitiesOnly yes
    UserKnownHostsFile $work/ssh/known_hosts
    StrictHostKeyChecking accept-new
CONF
    for k in a b; do
        ns=pl$tag$k
        ip netns add "$ns" 2>/dev/null || skip "the kernel makes no network namespace"
        launch_ns+=("$ns")
        ip link add "pl$tag$k" type veth peer name eth0 netns "$ns" &&
            ip link set "pl$tag$k" master "pl$tag" up &&
            ip -n "$ns" addr add "$net.$n/24" dev eth0 &&
            ip -n "$ns" link set eth0 up && ip -n "$ns" link set lo up ||
            skip "the kernel makes no pair of network devices"
        cat >"$work/ssh/sshd-$k" <<CONF
ListenAddress $net.$n
HostKey $work/ssh/host_key
AuthorizedKeysFile $work/ssh/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile $work/ssh/$k.pid
CONF
        # What the user's shell does at its start is none of the test's business, and may
        # take a second a session.
        ip netns exec "$ns" unshare --uts --mount --propagation private sh -c "
            if [ -e ~root/.bashrc ]; then mount --bind /dev/null ~root/.bashrc; fi
            hostname node-$k && mount -t tmpfs none /run && mkdir /run/sshd &&
                mount -t tmpfs none $work/tmp &&
                exec /usr/sbin/sshd -D -f $work/ssh/sshd-$k -E $work/ssh/log-$k" \
            >"$work/ssh/out-$k" 2>&1 &
        launch_pids+=($!)
        n=$((n + 1))
    done
    ssh_is_up() {
        local i
        for i in 2 3; do
            ssh -F "$ssh_f" -o BatchMode=yes -o ConnectTimeout=2 "$net.$i" true 2>/dev/null ||
                return 1
        done
    }
    wait_for ssh_is_up ||
        skip "sshd does not start: $(tail -1 "$work"/ssh/{out,log}-a | tr '\n' ' ')"
}

# open_psd: the test's psd on an address that the hosts reach, instead of loopback.
open_psd() {
    PSD_SECURITY_ALLOW_PLAINTEXT=true "$PSD_PROGRAM" --data-dir "$work/data" \
        --listen "tcp://$net.1:0" >"$work/psd.log" 2>&1 &
    psd_pid=$!
    wait_for test -s "$work/data/endpoints.json" || exit 1
    PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' "$work/data/endpoints.json")
    export PSCLI_ENDPOINT
}

# A slurm of this machine: slurm_start N, with N nodes; SLURM_CONF names it.
slurm_start() {
    local n=$1 i dir=$work/slurm name names=() bin
    need slurmctld slurmctld
    need slurmd slurmd
    need munged munge
    need srun slurm-client
    PATH=$PATH:/usr/sbin:/sbin
    mkdir -p "$dir"/{state,spool,run,log,munge}
    chmod 755 "$work" "$dir" "$dir/munge"
    head -c 1024 /dev/urandom >"$dir/munge.key"
    chmod 400 "$dir/munge.key"
    munged --force --socket "$dir/munge/munge.sock" --key-file "$dir/munge.key" \
        --pid-file "$dir/munge/munged.pid" --log-file "$dir/munge/munged.log" \
        --seed-file "$dir/munge/seed" >"$dir/log/munged" 2>&1 ||
        skip "munged does not start: $(tail -1 "$dir/log/munged")"
    wait_for test -s "$dir/munge/munged.pid" || skip "munged does not start"
    launch_pids+=("$(cat "$dir/munge/munged.pid")")
    local base
    base=$(free_ports $((n + 2)))
    {
        cat <<CONF
ClusterName=psdtest
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$base
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/munge.sock
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
CONF
        for ((i = 1; i <= n; i++)); do
            echo "NodeName=n$i NodeHostname=$(hostname -s) NodeAddr=127.0.0.1" \
                "Port=$((base + i)) CPUs=8 RealMemory=2000 State=UNKNOWN"
            mkdir -p "$dir/spool/n$i"
            names+=("n$i")
        done
        echo "PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
    } >"$dir/slurm.conf"
    export SLURM_CONF=$dir/slurm.conf
    slurmctld -f "$SLURM_CONF" >"$dir/log/start" 2>&1 ||
        skip "slurmctld does not start: $(tail -1 "$dir/log/start")"
    for name in "${names[@]}"; do
        slurmd -f "$SLURM_CONF" -N "$name" >>"$dir/log/start" 2>&1 ||
            skip "slurmd does not start: $(tail -1 "$dir/log/start")"
    done
    for bin in slurmctld "${names[@]/#/slurmd-}"; do
        wait_for test -s "$dir/run/$bin.pid" || skip "$bin does not start"
        launch_pids=("$(cat "$dir/run/$bin.pid")" "${launch_pids[@]}")
    done
    slurm_is_idle() {
        [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$n" ]
    }
    wait_for slurm_is_idle || {
        tail -5 "$dir"/log/*.log
        fail "slurm does not become idle"
        exit 1
    }
}

# free_ports N: the first of N free ports in a row, below those that the kernel gives.
free_ports() {
    local base i
    for ((base = 20000 + RANDOM % 8000; ; base += $1)); do
        for ((i = 0; i < $1; i++)); do
            ! (exec 3<>"/dev/tcp/127.0.0.1/$((base + i))") 2>/dev/null || break
        done
        if [ "$i" -eq "$1" ]; then
            echo "$base"
            return
        fi
    done
}
