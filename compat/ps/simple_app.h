/* SPDX-License-Identifier: Apache-2.0 */
/* ps/simple_app.h - requests of a number and a text, and their answers */
#ifndef PSD_COMPAT_PS_SIMPLE_APP_H
#define PSD_COMPAT_PS_SIMPLE_APP_H

#include <functional>
#include <memory>
#include <string>

#include "ps/internal/message.h"
#include "ps/internal/postoffice.h"

namespace ps {

/* A request or an answer that has arrived. An aggregate, as ps-lite's. */
struct SimpleData {
    int head;
    std::string body;
    int sender; /* the node's number */
    int timestamp;
    int customer_id; /* of the one that asks */
};

class SimpleApp {
  public:
    using Handle = std::function<void(const SimpleData &data, SimpleApp *app)>;

    SimpleApp(int app_id, int customer_id) : SimpleApp()
    {
        obj_ =
            new Customer(app_id, customer_id, [this](const Message &message) { Process(message); });
    }
    explicit SimpleApp(int app_id) : SimpleApp(app_id, app_id) {}
    virtual ~SimpleApp()
    {
        delete obj_;
        obj_ = nullptr;
    }
    SimpleApp(const SimpleApp &) = delete;
    SimpleApp &operator=(const SimpleApp &) = delete;

    /* To a node, or to each of a group. Returns the timestamp. */
    virtual int Request(int head, const std::string &body, int receiver)
    {
        const int timestamp = obj_->NewRequest(receiver);
        Message message = Fill(head, body, timestamp);

        message.meta.request = true;
        message.meta.customer_id = obj_->customer_id();
        for (const int node : Postoffice::Get()->GetNodeIDs(receiver)) {
            obj_->Expect(timestamp, node, "request with head " + std::to_string(head));
        }
        for (const int node : Postoffice::Get()->GetNodeIDs(receiver)) {
            message.meta.recver = node;
            Postoffice::Get()->van()->Send(message);
        }
        return timestamp;
    }
    virtual void Wait(int timestamp) { obj_->WaitRequest(timestamp); }
    virtual void Response(const SimpleData &request, const std::string &body = "")
    {
        Message message = Fill(request.head, body, request.timestamp);

        message.meta.customer_id = request.customer_id;
        message.meta.recver = request.sender;
        Postoffice::Get()->van()->Send(message);
    }
    virtual void set_request_handle(const Handle &handle)
    {
        CHECK(handle) << "an empty handle";
        Postoffice::Get()->SetHandle([&] { request_handle_ = std::make_shared<Handle>(handle); });
    }
    virtual void set_response_handle(const Handle &handle)
    {
        CHECK(handle) << "an empty handle";
        Postoffice::Get()->SetHandle([&] { response_handle_ = std::make_shared<Handle>(handle); });
    }
    virtual Customer *get_customer() { return obj_; }

  protected:
    SimpleApp() : obj_(nullptr) { Postoffice::Get()->Arrive(); }
    /* Runs the handle; without one, requests are answered. */
    void Process(const Message &message)
    {
        const Meta &meta = message.meta;
        std::shared_ptr<Handle> handle;
        SimpleData data = SimpleData();

        data.head = meta.head;
        data.body = meta.body;
        data.sender = meta.sender;
        data.timestamp = meta.timestamp;
        data.customer_id = meta.customer_id;
        Postoffice::Get()->WaitHandle(meta.request ? 3000 : 0, [&] {
            handle = meta.request ? request_handle_ : response_handle_;
            return handle != nullptr || Postoffice::Get()->goes_on();
        });
        if (handle != nullptr) {
            (*handle)(data, this);
        } else if (meta.request) {
            Response(data);
        }
    }

    Customer *obj_;

  private:
    Message Fill(int head, const std::string &body, int timestamp) const
    {
        Message message;

        message.meta.head = head;
        message.meta.body = body;
        message.meta.timestamp = timestamp;
        message.meta.simple_app = true;
        message.meta.app_id = obj_->app_id();
        return message;
    }
    std::shared_ptr<Handle> request_handle_, response_handle_;
};

}
#endif
