# SPDX-License-Identifier: Apache-2.0
# bash completion, made by "pscli completion bash"
# shellcheck shell=bash
_pscli() {
    local current previous word flags i
    local noun="" verb="" rest="" words="" value=""
    current=${COMP_WORDS[COMP_CWORD]}
    previous=${COMP_WORDS[COMP_CWORD - 1]}
    flags=" --endpoint --context --output --template --columns --sort --no-headers --timeout --wait --watch --yes --dry-run --quiet --verbose --big-as-text --no-color --help --version"
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --endpoint|--context|--output|-o|--timeout|--watch) ((i++)) ;;
        -*) ;;
        *)
            if [ -z "$noun" ]; then noun=$word
            elif [ -z "$verb" ]; then verb=$word
            elif [ "$noun $verb" = "cluster registry" ]; then verb="registry $word"
            else rest=$word; fi ;;
        esac
    done
    case $noun in
    "") words=" cluster node table checkpoint push pull plan data job worker clock why run check doctor slow wait top page support-bundle auth bench context env explain completion help version" ;;
    cluster) [ -z "$verb" ] && words=" status events rebalance repair backup restore settings get set unset registry rebuild" ;;
    node) [ -z "$verb" ] && words=" list inspect invite drain remove promote demote" ;;
    table) [ -z "$verb" ] && words=" create list inspect drop ack set diff export import" ;;
    checkpoint) [ -z "$verb" ] && words=" create list inspect verify restore resume drop" ;;
    push) rest=$verb; verb="" ;;
    pull) rest=$verb; verb="" ;;
    plan) rest=$verb; verb="" ;;
    data) [ -z "$verb" ] && words=" convert show detect" ;;
    job) [ -z "$verb" ] && words=" list inspect stop check-overlay" ;;
    worker) [ -z "$verb" ] && words=" list exec" ;;
    clock) [ -z "$verb" ] && words=" list inspect" ;;
    why) rest=$verb; verb="" ;;
    run) rest=$verb; verb="" ;;
    check) rest=$verb; verb="" ;;
    doctor) rest=$verb; verb="" ;;
    slow) rest=$verb; verb="" ;;
    wait) rest=$verb; verb="" ;;
    top) rest=$verb; verb="" ;;
    page) rest=$verb; verb="" ;;
    support-bundle) rest=$verb; verb="" ;;
    auth) [ -z "$verb" ] && words=" keygen list allow invite accept deny rotate can-i whoami audit" ;;
    bench) [ -z "$verb" ] && words=" push pull pushpull latency suite" ;;
    context) [ -z "$verb" ] && words=" list show set use drop" ;;
    env) rest=$verb; verb="" ;;
    explain) rest=$verb; verb="" ;;
    completion) rest=$verb; verb="" ;;
    help) rest=$verb; verb="" ;;
    version) rest=$verb; verb="" ;;
    esac
    case "$noun${verb:+ $verb}" in
    "cluster registry") words=" list add remove transfer inspect single unknown accept discard" ;;
    "cluster status")
        ;;
    "cluster events")
        flags+=" --last --since --kind --follow"
        case $previous in
        esac
        ;;
    "cluster rebalance")
        ;;
    "cluster repair")
        ;;
    "cluster backup")
        flags+=" --to"
        case $previous in
        esac
        ;;
    "cluster restore")
        flags+=" --from --data-dir"
        case $previous in
        esac
        ;;
    "cluster settings")
        ;;
    "cluster get")
        ;;
    "cluster set")
        ;;
    "cluster unset")
        ;;
    "cluster registry list")
        ;;
    "cluster registry add")
        flags+=" --standby"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "cluster registry remove")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "cluster registry transfer")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "cluster registry inspect")
        flags+=" --data-dir"
        case $previous in
        esac
        ;;
    "cluster registry single")
        flags+=" --data-dir"
        case $previous in
        esac
        ;;
    "node list")
        ;;
    "node inspect")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "node invite")
        flags+=" --ttl"
        case $previous in
        esac
        ;;
    "node drain")
        flags+=" --no-wait --stay"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "node remove")
        flags+=" --force"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "node promote")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "node demote")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli node list -o name --timeout 300ms 2>/dev/null)
        ;;
    "job list")
        ;;
    "job inspect")
        flags+=" --overlay --matrix --dot"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli job list -o name --timeout 300ms 2>/dev/null)
        ;;
    "job stop")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli job list -o name --timeout 300ms 2>/dev/null)
        ;;
    "job check-overlay")
        flags+=" --workers"
        case $previous in
        esac
        ;;
    "worker list")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli job list -o name --timeout 300ms 2>/dev/null)
        ;;
    "worker exec")
        flags+=" --launch --stdin"
        case $previous in
        esac
        ;;
    "clock list")
        ;;
    "clock inspect")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli job list -o name --timeout 300ms 2>/dev/null)
        ;;
    "why")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli job list -o name --timeout 300ms 2>/dev/null)
        ;;
    "cluster registry unknown")
        ;;
    "cluster registry accept")
        flags+=" --all --accept-loss"
        case $previous in
        esac
        ;;
    "cluster registry discard")
        ;;
    "cluster rebuild")
        flags+=" --from-nodes --accept-loss"
        case $previous in
        esac
        ;;
    "table create")
        flags+=" --rows --cols --type --row-format --keys --updater --init --seed --partitions --partition-by --replicas --ack --filter --combine --allow-nonfinite --versions"
        case $previous in
    --type) words="i32 i64 f32 f64"; value=1 ;;
    --row-format) words="dense sparse auto"; value=1 ;;
    --keys) words="range hash"; value=1 ;;
    --ack) words="memory replica disk"; value=1 ;;
    --combine) words="each clock-sum clock-mean"; value=1 ;;
        esac
        ;;
    "table list")
        ;;
    "table inspect")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "table drop")
        [ -z "$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "table ack")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "table set")
        flags+=" --combine"
        case $previous in
    --combine) words="each clock-sum clock-mean"; value=1 ;;
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "table diff")
        flags+=" --tolerance --limit"
        case $previous in
        esac
        [ -z "$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "table export")
        flags+=" --to --format"
        case $previous in
    --format) words="npy csv text"; value=1 ;;
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "table import")
        flags+=" --from --format"
        case $previous in
    --format) words="npy csv text"; value=1 ;;
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "push")
        flags+=" --from --trace --trace-file --trace-otlp"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "pull")
        flags+=" --cols --trace --trace-file --trace-otlp"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "checkpoint create")
        flags+=" --every --keep --job --since --table"
        case $previous in
        esac
        ;;
    "checkpoint list")
        ;;
    "checkpoint inspect")
        ;;
    "checkpoint verify")
        ;;
    "checkpoint restore")
        flags+=" --job --workers --epochs --table --as --partitions --replicas --ack"
        case $previous in
        esac
        ;;
    "checkpoint resume")
        flags+=" --job --workers --epochs"
        case $previous in
        esac
        ;;
    "checkpoint drop")
        ;;
    "plan")
        flags+=" --rows --cols --type --row-format --keys --updater --fill --partitions --partition-by --replicas --nodes --shards"
        case $previous in
    --type) words="i32 i64 f32 f64"; value=1 ;;
    --row-format) words="dense sparse auto"; value=1 ;;
    --keys) words="range hash"; value=1 ;;
    --partition-by) words="range hash"; value=1 ;;
        esac
        ;;
    "data convert")
        flags+=" --from --to --lossy --strict --entries --vocabulary --merge --bits --no-constant --hash-all --scale --labels --rows --cache --part --parts"
        case $previous in
    --from|-f) words="auto libsvm ps vw adfea terafea criteo csv lda-c text idx binary uci proto"; value=1 ;;
    --to|-t) words="libsvm ps csv vw lda-c binary uci proto proto-instance proto-input"; value=1 ;;
    --entries) words="auto sparse binary dense"; value=1 ;;
        esac
        ;;
    "data show")
        flags+=" --number --summary --from --strict --entries --vocabulary --merge --bits --no-constant --hash-all --scale --labels --rows --cache --part --parts"
        case $previous in
    --from|-f) words="auto libsvm ps vw adfea terafea criteo csv lda-c text idx binary uci proto"; value=1 ;;
    --entries) words="auto sparse binary dense"; value=1 ;;
        esac
        ;;
    "data detect")
        ;;
    "run")
        flags+=" --workers --servers --launcher --hosts --hostfile --ssh --mpi --slurm --batch --oversubscribe --restart --env --address --pscli --image --job --max-delay --overlay --site --allow-lost --psd"
        case $previous in
    --launcher) words="local ssh mpi slurm kubernetes yarn"; value=1 ;;
    --overlay) words="off auto tree pairs queue"; value=1 ;;
        esac
        ;;
    "context list")
        ;;
    "context show")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli context list -o name 2>/dev/null)
        ;;
    "context set")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli context list -o name 2>/dev/null)
        ;;
    "context use")
        flags+=" --none"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli context list -o name 2>/dev/null)
        ;;
    "context drop")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli context list -o name 2>/dev/null)
        ;;
    "env")
        ;;
    "explain")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli explain -o name 2>/dev/null)
        ;;
    "completion")
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(printf "%s\n" bash zsh fish)
        ;;
    "help")
        flags+=" --man"
        case $previous in
        esac
        words=" cluster node table checkpoint push pull plan data job worker clock why run check doctor slow wait top page support-bundle auth bench context env explain completion help version"
        ;;
    "version")
        ;;
    "check")
        flags+=" --warn --crit --format"
        case $previous in
    --format) words="text nagios prometheus"; value=1 ;;
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(printf "%s\n" health lag clocks backup)
        ;;
    "doctor")
        flags+=" --data-dir"
        case $previous in
        esac
        ;;
    "slow")
        flags+=" --limit"
        case $previous in
        esac
        [ -z "$rest$value" ] && [[ $current != -* ]] &&
            words=$(pscli table list -o name --timeout 300ms 2>/dev/null)
        ;;
    "wait")
        flags+=" --for"
        case $previous in
        esac
        ;;
    "top")
        flags+=" --every --once"
        case $previous in
        esac
        ;;
    "page")
        flags+=" --data-dir"
        case $previous in
        esac
        ;;
    "support-bundle")
        flags+=" --to --data-dir"
        case $previous in
        esac
        ;;
    "auth keygen")
        flags+=" --file"
        case $previous in
        esac
        ;;
    "auth list")
        ;;
    "auth allow")
        flags+=" --role --tables --jobs --key --uid --add"
        case $previous in
        esac
        ;;
    "auth invite")
        flags+=" --role --tables --jobs --ttl"
        case $previous in
        esac
        ;;
    "auth accept")
        flags+=" --file"
        case $previous in
        esac
        ;;
    "auth deny")
        ;;
    "auth rotate")
        flags+=" --grace --key"
        case $previous in
        esac
        ;;
    "auth can-i")
        flags+=" --as"
        case $previous in
        esac
        ;;
    "auth whoami")
        ;;
    "auth audit")
        flags+=" --verify --since --who --refused --last"
        case $previous in
        esac
        ;;
    "bench push")
        flags+=" --transport --sizes --keys --floats --random --partitions --in-flight --workers --repeats --duration --in-place"
        case $previous in
    --transport) words="tcp ipc lane all"; value=1 ;;
        esac
        ;;
    "bench pull")
        flags+=" --transport --sizes --keys --floats --random --partitions --in-flight --workers --repeats --duration"
        case $previous in
    --transport) words="tcp ipc lane all"; value=1 ;;
        esac
        ;;
    "bench pushpull")
        flags+=" --transport --sizes --keys --floats --random --partitions --in-flight --workers --repeats --duration"
        case $previous in
    --transport) words="tcp ipc lane all"; value=1 ;;
        esac
        ;;
    "bench latency")
        flags+=" --transport --floats --requests --repeats"
        case $previous in
    --transport) words="tcp ipc lane all"; value=1 ;;
        esac
        ;;
    "bench suite")
        flags+=" --quick --full --only --transport --repeats --duration --divide --svg --psd"
        case $previous in
    --transport) words="tcp ipc lane all"; value=1 ;;
        esac
        ;;
    esac
    case $previous in
    --output|-o) words="table wide json jsonl csv tsv name yaml template"; value=1 ;;
    --from|--to|--man|--psd) [ -n "$value" ] || words=$(compgen -f -- "$current"); value=1 ;;
    esac
    [ -z "$value" ] && [[ $current == -* ]] && words=$flags
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _pscli pscli
