"""A loss beside the labels' in fine-tuning: language modelling for GPT, a teacher's answers."""

from official_bert.common.errors import UserError
from official_bert.losses import ModelWithLosses


class WithOneMoreLoss(ModelWithLosses):
    """A model of `official_bert.heads`, the `student`, trained with a loss beside the labels'.

    In evaluation it is the student alone, and so is what is saved.
    """

    def __init__(self, student, loss: str, **kwargs):
        super().__init__(dtype=student.dtype_policy, **kwargs)
        self.student = student
        self.label_names = student.label_names
        self._more = loss
        self._declare_means(loss)

    def kept(self):
        return self.student.kept()

    def input_specs(self):
        return self.student.input_specs()

    def pad(self, batch, rows):
        self.student.pad(batch, rows)

    def metric_terms(self, batch, outputs):
        return self.student.metric_terms(batch, outputs)

    def check_labels(self, name, labels):
        self.student.check_labels(name, labels)

    def get_config(self):
        raise UserError("a .keras file is of the model alone: save the attribute student")

    def _mean(self, name):
        return super()._mean(name) if name == self._more else self.student._mean(name)
