"""What Sphinx reads; `build.py` makes the folder of pages that it reads it for."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import relcore

project, release, language = "Relscope", relcore.__version__, "en"
html_title, html_short_title = "Relscope", "Relscope"
author, copyright = "The Relscope maintainers", "The Relscope maintainers, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
html_math_renderer = "mathml"
myst_enable_extensions, myst_heading_anchors = ["colon_fence", "dollarmath"], 3
suppress_warnings = ["toc.not_included"]  # pages that are reached by links alone

default_role = "py:obj"  # `name` in a docstring is a link where it names a public object, else code
autodoc_member_order, autodoc_typehints = "bysource", "signature"
autodoc_default_options = {"members": True, "inherited-members": "AnyWidget,tuple,float,dict"}
napoleon_google_docstring, napoleon_use_rtype = False, False
python_use_unqualified_type_names = True
pygments_style = "sphinx"

html_theme = "pydata_sphinx_theme"
html_static_path, html_css_files = ["_static"], ["style.css"]
html_extra_path = ["extra"]
html_favicon = html_logo = "_static/icon.svg"
html_show_sourcelink, html_copy_source, html_show_sphinx = False, False, False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "Relscope"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app):
    """Formulas as MathML, which browsers draw without a script."""

    def formula(writer, node):
        writer.body.append(tex2mathml(node.astext(), as_block=node.tagname == "math_block"))
        raise SkipNode

    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
