#compdef pscli
# SPDX-License-Identifier: Apache-2.0
# zsh completion, made by "pscli completion zsh"
_pscli() {
    local -a words_ flags
    local noun= verb= word ask=
    for word in ${words[2,CURRENT-1]}; do
        [[ $word == -* ]] && continue
        if [[ -z $noun ]]; then noun=$word
        elif [[ -z $verb ]]; then verb=$word
        elif [[ "$noun $verb" == "cluster registry" ]]; then verb="registry $word"
        fi
    done
    flags=( --endpoint --context --output --template --columns --sort --no-headers --timeout --wait --watch --yes --dry-run --quiet --verbose --big-as-text --no-color --help --version)
    case $noun in
    '') words_=( cluster node table checkpoint push pull plan data job worker clock why run check doctor slow wait top page support-bundle auth bench context env explain completion help version) ;;
    cluster) [[ -z $verb ]] && words_=( status events rebalance repair backup restore settings get set unset registry rebuild) ;;
    node) [[ -z $verb ]] && words_=( list inspect invite drain remove promote demote) ;;
    table) [[ -z $verb ]] && words_=( create list inspect drop ack set diff export import) ;;
    checkpoint) [[ -z $verb ]] && words_=( create list inspect verify restore resume drop) ;;
    push) verb="" ;;
    pull) verb="" ;;
    plan) verb="" ;;
    data) [[ -z $verb ]] && words_=( convert show detect) ;;
    job) [[ -z $verb ]] && words_=( list inspect stop check-overlay) ;;
    worker) [[ -z $verb ]] && words_=( list exec) ;;
    clock) [[ -z $verb ]] && words_=( list inspect) ;;
    why) verb="" ;;
    run) verb="" ;;
    check) verb="" ;;
    doctor) verb="" ;;
    slow) verb="" ;;
    wait) verb="" ;;
    top) verb="" ;;
    page) verb="" ;;
    support-bundle) verb="" ;;
    auth) [[ -z $verb ]] && words_=( keygen list allow invite accept deny rotate can-i whoami audit) ;;
    bench) [[ -z $verb ]] && words_=( push pull pushpull latency suite) ;;
    context) [[ -z $verb ]] && words_=( list show set use drop) ;;
    env) verb="" ;;
    explain) verb="" ;;
    completion) verb="" ;;
    help) verb="" ;;
    version) verb="" ;;
    esac
    case "$noun${verb:+ $verb}" in
    'cluster registry') words_=( list add remove transfer inspect single unknown accept discard) ;;
    'cluster status') flags+=() ;;
    'cluster events') flags+=( --last --since --kind --follow) ;;
    'cluster rebalance') flags+=() ;;
    'cluster repair') flags+=() ;;
    'cluster backup') flags+=( --to) ;;
    'cluster restore') flags+=( --from --data-dir) ;;
    'cluster settings') flags+=() ;;
    'cluster get') flags+=() ;;
    'cluster set') flags+=() ;;
    'cluster unset') flags+=() ;;
    'cluster registry list') flags+=() ;;
    'cluster registry add') flags+=( --standby); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'cluster registry remove') flags+=(); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'cluster registry transfer') flags+=(); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'cluster registry inspect') flags+=( --data-dir) ;;
    'cluster registry single') flags+=( --data-dir) ;;
    'node list') flags+=() ;;
    'node inspect') flags+=(); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'node invite') flags+=( --ttl) ;;
    'node drain') flags+=( --no-wait --stay); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'node remove') flags+=( --force); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'node promote') flags+=(); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'node demote') flags+=(); ask='pscli node list -o name --timeout 300ms 2>/dev/null' ;;
    'job list') flags+=() ;;
    'job inspect') flags+=( --overlay --matrix --dot); ask='pscli job list -o name --timeout 300ms 2>/dev/null' ;;
    'job stop') flags+=(); ask='pscli job list -o name --timeout 300ms 2>/dev/null' ;;
    'job check-overlay') flags+=( --workers) ;;
    'worker list') flags+=(); ask='pscli job list -o name --timeout 300ms 2>/dev/null' ;;
    'worker exec') flags+=( --launch --stdin) ;;
    'clock list') flags+=() ;;
    'clock inspect') flags+=(); ask='pscli job list -o name --timeout 300ms 2>/dev/null' ;;
    'why') flags+=(); ask='pscli job list -o name --timeout 300ms 2>/dev/null' ;;
    'cluster registry unknown') flags+=() ;;
    'cluster registry accept') flags+=( --all --accept-loss) ;;
    'cluster registry discard') flags+=() ;;
    'cluster rebuild') flags+=( --from-nodes --accept-loss) ;;
    'table create') flags+=( --rows --cols --type --row-format --keys --updater --init --seed --partitions --partition-by --replicas --ack --filter --combine --allow-nonfinite --versions) ;;
    'table list') flags+=() ;;
    'table inspect') flags+=(); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'table drop') flags+=(); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'table ack') flags+=(); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'table set') flags+=( --combine); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'table diff') flags+=( --tolerance --limit); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'table export') flags+=( --to --format); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'table import') flags+=( --from --format); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'push') flags+=( --from --trace --trace-file --trace-otlp); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'pull') flags+=( --cols --trace --trace-file --trace-otlp); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'checkpoint create') flags+=( --every --keep --job --since --table) ;;
    'checkpoint list') flags+=() ;;
    'checkpoint inspect') flags+=() ;;
    'checkpoint verify') flags+=() ;;
    'checkpoint restore') flags+=( --job --workers --epochs --table --as --partitions --replicas --ack) ;;
    'checkpoint resume') flags+=( --job --workers --epochs) ;;
    'checkpoint drop') flags+=() ;;
    'plan') flags+=( --rows --cols --type --row-format --keys --updater --fill --partitions --partition-by --replicas --nodes --shards) ;;
    'data convert') flags+=( --from --to --lossy --strict --entries --vocabulary --merge --bits --no-constant --hash-all --scale --labels --rows --cache --part --parts) ;;
    'data show') flags+=( --number --summary --from --strict --entries --vocabulary --merge --bits --no-constant --hash-all --scale --labels --rows --cache --part --parts) ;;
    'data detect') flags+=() ;;
    'run') flags+=( --workers --servers --launcher --hosts --hostfile --ssh --mpi --slurm --batch --oversubscribe --restart --env --address --pscli --image --job --max-delay --overlay --site --allow-lost --psd) ;;
    'context list') flags+=() ;;
    'context show') flags+=(); ask='pscli context list -o name 2>/dev/null' ;;
    'context set') flags+=(); ask='pscli context list -o name 2>/dev/null' ;;
    'context use') flags+=( --none); ask='pscli context list -o name 2>/dev/null' ;;
    'context drop') flags+=(); ask='pscli context list -o name 2>/dev/null' ;;
    'env') flags+=() ;;
    'explain') flags+=(); ask='pscli explain -o name 2>/dev/null' ;;
    'completion') flags+=(); ask='printf "%s\n" bash zsh fish' ;;
    'help') flags+=( --man) ;;
    'version') flags+=() ;;
    'check') flags+=( --warn --crit --format); ask='printf "%s\n" health lag clocks backup' ;;
    'doctor') flags+=( --data-dir) ;;
    'slow') flags+=( --limit); ask='pscli table list -o name --timeout 300ms 2>/dev/null' ;;
    'wait') flags+=( --for) ;;
    'top') flags+=( --every --once) ;;
    'page') flags+=( --data-dir) ;;
    'support-bundle') flags+=( --to --data-dir) ;;
    'auth keygen') flags+=( --file) ;;
    'auth list') flags+=() ;;
    'auth allow') flags+=( --role --tables --jobs --key --uid --add) ;;
    'auth invite') flags+=( --role --tables --jobs --ttl) ;;
    'auth accept') flags+=( --file) ;;
    'auth deny') flags+=() ;;
    'auth rotate') flags+=( --grace --key) ;;
    'auth can-i') flags+=( --as) ;;
    'auth whoami') flags+=() ;;
    'auth audit') flags+=( --verify --since --who --refused --last) ;;
    'bench push') flags+=( --transport --sizes --keys --floats --random --partitions --in-flight --workers --repeats --duration --in-place) ;;
    'bench pull') flags+=( --transport --sizes --keys --floats --random --partitions --in-flight --workers --repeats --duration) ;;
    'bench pushpull') flags+=( --transport --sizes --keys --floats --random --partitions --in-flight --workers --repeats --duration) ;;
    'bench latency') flags+=( --transport --floats --requests --repeats) ;;
    'bench suite') flags+=( --quick --full --only --transport --repeats --duration --divide --svg --psd) ;;
    esac
    if [[ $PREFIX == -* ]]; then compadd -- $flags; return; fi
    [[ -n $ask ]] && words_=($(eval $ask))
    if (( $#words_ )); then compadd -- $words_; else _files; fi
}
_pscli "$@"
