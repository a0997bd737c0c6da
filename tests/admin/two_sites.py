"""The URLs of a project with two admin sites that both have the screens."""

from django.contrib import admin
from django.urls import path

from django_pgbroker.admin import JobScreen, QueueScreen
from django_pgbroker.models import Job, Queue

operations_site = admin.AdminSite(name="operations")
operations_site.register(Job, JobScreen)
operations_site.register(Queue, QueueScreen)

urlpatterns = [path("admin/", admin.site.urls), path("operations/", operations_site.urls)]
