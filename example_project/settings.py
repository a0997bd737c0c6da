"""Settings of the example project. DATABASE_URL, DEBUG, SECRET_KEY and PORT may come from the environment or `.env`.

A name with `_FILE` behind it (DATABASE_URL_FILE, SECRET_KEY_FILE) gives the path of a file with the value instead.
"""

from pathlib import Path

import environ

from example_project.environment import read_database, read_port

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.FileAwareEnv()
if (BASE_DIR / ".env").is_file():
    env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=True)
# For development on this machine only; without DEBUG the environment must name a real one.
SECRET_KEY = env("SECRET_KEY", default="django-insecure-for-development-only") if DEBUG else env("SECRET_KEY").strip()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
PORT = read_port(env, default=8000)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "admin_extra_buttons",
    "django_pgbroker",
    "example_project.documents",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
ASGI_APPLICATION = "example_project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": read_database(env)
    if env("DATABASE_URL", default="")
    # No HOST: the backend starts the embedded server of this clone, or attaches to it, on the first connection.
    else {"ENGINE": "example_project.backend", "NAME": "pgbroker"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
STATIC_URL = "static/"

PGBROKER: dict[str, object] = {}
