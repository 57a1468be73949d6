/* Tickets: made once and used again; they keep the executor's memory, not its threads. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "core/launch/executor.h"

static void destroy_memory(kiln_executor *executor)
{
    while (executor->free_tickets != NULL) {
        kiln_ticket *ticket = executor->free_tickets;
        executor->free_tickets = ticket->next;
        free(ticket);
    }
    kn_cond_deinit(&executor->news);
    kn_cond_deinit(&executor->back_has);
    kn_cond_deinit(&executor->front_has);
    kn_cond_deinit(&executor->room);
    kn_mutex_deinit(&executor->mutex);
    free(executor);
}

void kn_executor_drop(kiln_executor *executor)
{
    const bool last = --executor->references == 0;
    kn_mutex_unlock(&executor->mutex);
    if (last) {
        destroy_memory(executor);
    }
}

kiln_ticket *kn_ticket_take(kiln_executor *executor, uint32_t references)
{
    kiln_ticket *ticket = executor->free_tickets;
    if (ticket != NULL) {
        executor->free_tickets = ticket->next;
    } else {
        ticket = (kiln_ticket *)calloc(1, sizeof(*ticket));
        if (ticket == NULL) {
            return NULL;
        }
    }
    executor->references++;
    ticket->executor = executor;
    ticket->next = NULL;
    ticket->references = references;
    ticket->done = false;
    ticket->status = KILN_OK;
    return ticket;
}

void kn_ticket_drop(kiln_ticket *ticket)
{
    kiln_executor *executor = ticket->executor;
    if (--ticket->references == 0) {
        kiln_diag_clear(&ticket->diag);
        ticket->next = executor->free_tickets;
        executor->free_tickets = ticket;
        executor->references--; /* the caller holds another one */
    }
}

bool kiln_ticket_done(kiln_ticket *ticket)
{
    kn_mutex_lock(&ticket->executor->mutex);
    const bool done = ticket->done;
    kn_mutex_unlock(&ticket->executor->mutex);
    return done;
}

kiln_status kiln_ticket_wait(kiln_ticket *ticket, kiln_diag *diag)
{
    kiln_executor *executor = ticket->executor;
    kn_mutex_lock(&executor->mutex);
    while (!ticket->done) {
        kn_cond_wait(&executor->news, &executor->mutex);
    }
    const kiln_status status = ticket->status;
    if (status != KILN_OK) {
        kn_diag_copy(diag, &ticket->diag);
    }
    kn_mutex_unlock(&executor->mutex);
    return status;
}

kiln_ticket *kiln_ticket_retain(kiln_ticket *ticket)
{
    if (ticket != NULL) {
        kn_mutex_lock(&ticket->executor->mutex);
        ticket->references++;
        kn_mutex_unlock(&ticket->executor->mutex);
    }
    return ticket;
}

void kiln_ticket_release(kiln_ticket *ticket)
{
    if (ticket == NULL) {
        return;
    }
    kiln_executor *executor = ticket->executor;
    kn_mutex_lock(&executor->mutex);
    executor->references++; /* so that the ticket's is not the last one */
    kn_ticket_drop(ticket);
    kn_executor_drop(executor);
}
