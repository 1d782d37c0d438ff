/* SPDX-License-Identifier: Apache-2.0 */
/* psd_ps/van_inner.h - what a Van does by itself; ps/internal/van.h alone includes it */

void BeScheduler(int n_servers, int n_workers, bool is_verbose)
{
    psd_.Start(root_, true, is_verbose);
    inner::Door door = inner::MakeDoor(0);
    word_ = door.Word();
    my_node_.port = doors_.Open(my_node_.hostname, word_);
    door.port = my_node_.port;
    std::unique_lock<std::mutex> lock(mu_);
    hub_.Begin(n_servers, n_workers, my_node_);
    process_of_[kScheduler] = kScheduler;
    lock.unlock();
    inner::TellDoor(root_, door);
    TakeRoster();
}

/* Who we are, to a peer that we write to for the first time. */
Message Hello() const
{
    std::ostringstream text;
    Message hello;

    text << word_ << ' ' << static_cast<int>(my_node_.role) << ' ' << my_node_.hostname << ' '
         << my_node_.port;
    hello.meta.body = text.str();
    hello.meta.customer_id = my_node_.customer_id;
    hello.meta.sender = my_id_;
    return hello;
}

/* A small message of the vans. */
bool Tell(int to, int kind, int head, int customer_id, const std::string &body)
{
    Message message;

    message.meta.sender = my_id_;
    message.meta.recver = to;
    message.meta.head = head;
    message.meta.customer_id = customer_id;
    message.meta.body = body;
    return SendKind(kind, message);
}

/* The number of a peer that has shown the word. A new one is known to the scheduler alone. */
int Greet(const Message &hello)
{
    std::istringstream text(hello.meta.body);
    Node node;
    int role = -1;

    if (!(text >> role >> node.hostname >> node.port) || role < 0 || role > Node::SCHEDULER) {
        return 0;
    }
    if (hello.meta.sender != Meta::kEmpty) {
        return hello.meta.sender;
    }
    if (my_node_.role != Node::SCHEDULER || role == Node::SCHEDULER) {
        return 0;
    }
    node.role = static_cast<Node::Role>(role);
    node.customer_id = hello.meta.customer_id;
    std::unique_lock<std::mutex> lock(mu_);
    const int id = hub_.Add(node);
    auto link = std::make_shared<inner::Link>(node.hostname, node.port);
    if (id != 0) {
        links_[id] = link;
        process_of_[id] = id;
    }
    lock.unlock();
    if (id == 0) {
        Message no;

        no.meta.body = "the job has its servers and workers already";
        link->Send(inner::REFUSED, no, Hello());
        return 0;
    }
    TakeRoster();
    return id;
}

/* The scheduler: when all are there, everybody hears it. */
void TakeRoster()
{
    std::unique_lock<std::mutex> lock(mu_);

    if (!hub_.Complete()) {
        return;
    }
    const std::string roster = hub_.Roster();
    const std::vector<int> all = hub_.Living(kScheduler + kServerGroup + kWorkerGroup);
    lock.unlock();
    SetRoster(roster);
    for (const int process : all) {
        if (process != kScheduler) {
            Tell(process, inner::ROSTER, 0, 0, roster);
        }
    }
}

void SetRoster(const std::string &roster)
{
    std::istringstream text(roster);
    std::map<std::string, int> processes;
    Node node;
    int role;
    std::unique_lock<std::mutex> lock(mu_);

    while (text >> node.id >> role >> node.customer_id >> node.hostname >> node.port) {
        const std::string at = node.hostname + ":" + std::to_string(node.port);
        const int first = processes.insert(std::make_pair(at, node.id)).first->second;

        process_of_[node.id] = first;
        if (links_.count(first) == 0) {
            links_[first] = std::make_shared<inner::Link>(node.hostname, node.port);
        }
        heard_[first] = Clock::now();
    }
    my_node_.id = my_id_;
    is_ready_ = true;
    lock.unlock();
    cond_.notify_all();
}

void Receive(int peer, int kind, Message &message)
{
    {
        std::lock_guard<std::mutex> lock(mu_);
        heard_[peer] = Clock::now();
    }
    if (kind == inner::CUSTOMER && my_node_.role == Node::SCHEDULER) {
        std::unique_lock<std::mutex> lock(mu_);
        const bool fits = hub_.AddCustomer(peer, message.meta.customer_id);
        lock.unlock();
        if (fits) {
            TakeRoster();
        } else {
            Tell(peer, inner::REFUSED, 0, 0, "the job has its workers already");
        }
    } else if (kind == inner::ROSTER && peer == kScheduler) {
        my_id_ = message.meta.recver;
        SetRoster(message.meta.body);
    } else if (kind == inner::REFUSED && peer == kScheduler) {
        std::unique_lock<std::mutex> lock(mu_);
        refusal_ = message.meta.body.empty() ? "refused" : message.meta.body;
        lock.unlock();
        cond_.notify_all();
    } else if (kind == inner::ENTER && my_node_.role == Node::SCHEDULER) {
        Enter(peer, message.meta.customer_id, message.meta.head);
    } else if (kind == inner::LEAVE && peer == kScheduler) {
        Open(message.meta.head);
    } else if (kind == inner::DEAD && peer == kScheduler) {
        if (message.meta.head == my_id_) {
            LOG(FATAL) << "the scheduler has lost the connection to this node";
        }
        GoneAfterItsWords(message.meta.head, message.meta.body == "said");
    } else if (kind == inner::APP || kind == inner::ASK_MODE || kind == inner::MODE) {
        on_packet_(kind, message);
    }
}

/* The scheduler: somebody waits at a barrier. */
void Enter(int process, int customer_id, int group)
{
    std::unique_lock<std::mutex> lock(mu_);

    if (group > 0 && group <= kScheduler + kServerGroup + kWorkerGroup) {
        hub_.Enter(process, customer_id, group);
    }
    lock.unlock();
    OpenBarriers();
}
void OpenBarriers()
{
    std::unique_lock<std::mutex> lock(mu_);
    std::vector<std::pair<int, int>> told;

    for (const int group : hub_.Opened()) {
        for (const int process : hub_.Living(group)) {
            told.push_back(std::make_pair(group, process));
        }
    }
    lock.unlock();
    for (const auto &one : told) {
        if (one.second == kScheduler) {
            Open(one.first);
        } else {
            Tell(one.second, inner::LEAVE, one.first, 0, "");
        }
    }
}
void Open(int group)
{
    {
        std::lock_guard<std::mutex> lock(mu_);
        opened_[group]++;
    }
    cond_.notify_all();
}

/* The same, when something else says so than the process's own connection to here.
 * What it has sent is read first, up to the end of that connection. A host that is cut off
 * sends no end. */
void GoneAfterItsWords(int process, bool said)
{
    if (doors_.IsOpen(process)) {
        std::unique_lock<std::mutex> lock(mu_);

        cond_.wait_for(lock, std::chrono::seconds(1),
                       [this, process] { return is_stopping_ || gone_.count(process) != 0; });
    }
    Gone(process, said);
}

/* A process has ended; said: by BYE. */
void Gone(int process, bool said)
{
    bool is_news = false;
    bool is_early = false;
    std::vector<int> others;
    {
        std::lock_guard<std::mutex> lock(mu_);

        if (is_stopping_ && my_node_.role != Node::SCHEDULER) {
            return;
        }
        for (const auto &pair : process_of_) {
            if (pair.second == process) {
                is_news = gone_.insert(pair.first).second || is_news;
                if (!said) {
                    dead_.insert(pair.first);
                }
            }
        }
        if (process == kScheduler) {
            is_news = gone_.insert(kScheduler).second || is_news;
        }
        if (my_node_.role == Node::SCHEDULER && is_news) {
            hub_.Remove(process);
            is_early = !hub_.is_complete();
            others = hub_.Living(kServerGroup + kWorkerGroup);
        }
        if (process == kScheduler && !is_ready_) {
            refusal_ = "the scheduler has ended";
        }
        if (is_early) {
            refusal_ = "node " + std::to_string(process) + " has ended before all were there";
        }
    }
    if (!is_news) {
        return;
    }
    if (my_node_.role == Node::SCHEDULER && !is_early) {
        if (!said) {
            LOG(ERROR) << "node " << process << " has died";
        }
        for (const int other : others) { /* it may have had no connection to them */
            Tell(other, inner::DEAD, process, 0, said ? "said" : "");
        }
        OpenBarriers();
    }
    cond_.notify_all();
    on_gone_();
}

void TellRefusal(const std::string &why) const
{
    if (my_node_.role == Node::SCHEDULER) {
        Message no;

        no.meta.body = why;
        no.meta.sender = kScheduler;
        for (const auto &link : Links()) {
            link->Send(inner::REFUSED, no, Hello());
        }
    }
}

std::vector<std::shared_ptr<inner::Link>> Links() const
{
    std::vector<std::shared_ptr<inner::Link>> all;
    std::lock_guard<std::mutex> lock(mu_);

    for (const auto &pair : links_) {
        all.push_back(pair.second);
    }
    return all;
}

/* The scheduler, whose registry goes last. */
void WaitAlone()
{
    std::unique_lock<std::mutex> lock(mu_);

    if (!cond_.wait_for(lock, std::chrono::milliseconds(inner::StartMs()),
                        [this] { return hub_.Living(kServerGroup + kWorkerGroup).empty(); })) {
        LOG(ERROR) << "some nodes have not ended; the scheduler ends now";
    }
}

/* Lets others know that this process lives. */
void Tick()
{
    const int told = atoi(inner::Setting("PS_HEARTBEAT_INTERVAL").c_str());
    const auto period = std::chrono::seconds(told > 0 && told < 3600 ? told : 1);
    std::unique_lock<std::mutex> lock(mu_);

    while (!cond_.wait_for(lock, period, [this] { return is_stopping_; })) {
        const std::vector<int> to = my_node_.role == Node::SCHEDULER
                                        ? hub_.Living(kServerGroup + kWorkerGroup)
                                        : std::vector<int>(1, kScheduler);
        lock.unlock();
        for (const int process : to) {
            Tell(process, inner::PING, 0, 0, "");
        }
        lock.lock();
    }
}

OnPacket on_packet_;
OnGone on_gone_;
inner::Root root_;
std::string word_;
Node my_node_; /* its number, once is_ready_ */
std::atomic<int> my_id_{Node::kEmpty};
inner::PsdNode psd_;
Clock::time_point started_;
std::atomic<int> timestamp_{0};
std::atomic<bool> is_ready_{false};
mutable std::mutex mu_;
mutable std::condition_variable cond_;
mutable std::string refusal_; /* why the job does not start */
bool is_stopping_ = false;
inner::Hub hub_;                                    /* of the scheduler */
std::map<int, std::shared_ptr<inner::Link>> links_; /* by process */
std::map<int, int> process_of_;                     /* of each node */
std::map<int, Clock::time_point> heard_;            /* by process */
std::set<int> gone_, dead_;                         /* nodes */
std::map<int, int> opened_;                         /* barriers so far, by group */
std::thread ticking_;
inner::Doors doors_; /* ends its threads before the rest goes */
